import { beforeEach, expect, test } from "vitest";
import { MemberConnections, type RenewableConnection } from "../../../src/clusters/connections.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { cluster } from "../../support/builders/member.ts";

/** A connection to the server that its kubeconfig names before the slash. */
class Connection implements RenewableConnection {
  readonly server: string | undefined;
  isClosed = false;

  constructor(kubeconfig: string) {
    if (kubeconfig === "none") throw new Error("users: is missing");
    this.server = kubeconfig.split("/")[0];
  }

  renew(kubeconfig: string): boolean {
    return kubeconfig.split("/")[0] === this.server;
  }
}

const west = cluster("west");
let told: string[];
let connections: MemberConnections<Connection>;
beforeEach(() => {
  told = [];
  connections = new MemberConnections({
    connect: (_cluster, kubeconfig) => new Connection(kubeconfig),
    onConnected: (_cluster, { server }, previous) => told.push(`connected ${server} after ${previous?.server}`),
    onRenewed: (name) => told.push(`renewed ${name}`),
    close: async (connection) => {
      connection.isClosed = true;
    },
    source: () => "Secret west: ",
    log: createLogger({ level: "silent" }),
  });
});

test("a working connection stays while its kubeconfig is missing or unusable, with the reason", () => {
  connections.update(west, "a/1");
  const first = connections.get("west");
  connections.update(west, { problem: "Secret west is missing" });
  expect([connections.get("west"), connections.problem("west")]).toEqual([first, "Secret west is missing"]);
  connections.update(cluster("east"), "none");
  expect([connections.get("east"), connections.problem("east")]).toEqual([undefined, "Secret west: users: is missing"]);
  connections.update(west, "a/1");
  expect([connections.problem("west"), connections.hasProblems]).toEqual([undefined, true]);
  expect(told).toEqual(["connected a after undefined"]);
});

test("other credentials for the same server go on with the connection", () => {
  connections.update(west, "a/1");
  const first = connections.get("west");
  connections.update(west, "a/2");
  expect([connections.get("west"), connections.kubeconfig("west")]).toEqual([first, "a/2"]);
  expect(told).toEqual(["connected a after undefined", "renewed west"]);
});

test.each([
  ["another server", west, "b/1"],
  ["another way to the same server", cluster("west", { spec: { agent: {} } }), "a/1"],
])("%s gets a new connection, and the old one is closed", (_what, next, kubeconfig) => {
  connections.update(west, "a/1");
  const first = connections.get("west");
  connections.update(next, kubeconfig);
  expect(first?.isClosed).toBe(true);
  expect(connections.all()).toEqual([expect.objectContaining({ isClosed: false })]);
  expect(told.at(-1)).toBe(`connected ${kubeconfig[0]} after a`);
});
