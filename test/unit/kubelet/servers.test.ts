import { once } from "node:events";
import { request } from "node:https";
import { createServer } from "node:net";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ALL_NAMESPACES } from "../../../src/api/shards.ts";
import { NodeServers } from "../../../src/kubelet/servers.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { Store } from "../../../src/runtime/store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { freePort } from "../../support/clusters/ports.ts";

let changed: string[];
let logged: string[];
let first: number;
beforeEach(async () => {
  changed = [];
  logged = [];
  first = await freePort();
});

/** Starts servers for a host that publishes no authority. */
async function start(): Promise<NodeServers> {
  const proxies = new Store<object>();
  const servers = new NodeServers({
    listen: { host: "127.0.0.1", port: first },
    address: "192.0.2.7",
    certificate: { kind: "own", hosts: ["192.0.2.7"] },
    host: fakeClient({
      list: () => Promise.resolve({ items: [], resourceVersion: "1", size: 0 }),
      watch: async function* (_resource, { signal }) {
        yield { type: "BOOKMARK", resourceVersion: "2" };
        if (!signal.aborted) await once(signal, "abort");
      },
    }),
    source: {
      registry: { member: () => undefined, problem: () => undefined },
      proxies,
      proxiesOn: () => [],
      shard: ALL_NAMESPACES,
    },
    onChange: (cluster) => changed.push(cluster),
    clock: realClock,
    log: createLogger({ level: "warn", destination: { write: (line: string) => void logged.push(line) } }),
  });
  onTestFinished(() => servers.stop());
  await servers.start(new AbortController().signal);
  return servers;
}

function ask(port: number | undefined): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path: "/healthz", rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on("error", reject);
    asked.end();
  });
}

describe("the servers of virtual nodes", () => {
  test("have a port each, from the first one on, and are published as they listen", async () => {
    const others = createServer().listen(first, "127.0.0.1");
    await once(others, "listening");
    onTestFinished(() => {
      others.close();
    });
    const servers = await start();
    expect(servers.endpoint("west")).toBeUndefined();
    await servers.serve("west");
    await servers.serve("east");
    await servers.serve("east");
    const [west, east] = [servers.endpoint("west"), servers.endpoint("east")];
    expect(west?.address).toBe("192.0.2.7");
    expect(west?.port).toBeGreaterThan(first);
    expect(east?.port).toBeGreaterThan(west?.port ?? 0);
    expect(changed).toEqual(["west", "east"]);
    const busy = logged.filter((line) =>
      line.includes(`port ${first} of --kubelet-listen is in use by another process`),
    );
    expect(busy).toHaveLength(1);
    expect(logged.join("")).not.toContain(`port ${west?.port} of --kubelet-listen`);
    expect(await ask(west?.port)).toBe(401);
    expect(await ask(east?.port)).toBe(401);
  });

  test("keep the port that a node has had", async () => {
    const servers = await start();
    const had = await freePort();
    await servers.serve("west", Math.max(had, first));
    expect(servers.endpoint("west")?.port).toBe(Math.max(had, first));
  });

  test("end with their Cluster, and with the leader", async () => {
    const servers = await start();
    await servers.serve("west");
    await servers.serve("east");
    const [west, east] = [servers.endpoint("west")?.port, servers.endpoint("east")?.port];
    await servers.withdraw("west");
    expect(servers.endpoint("west")).toBeUndefined();
    await expect(ask(west)).rejects.toThrow();
    expect(await ask(east)).toBe(401);
    await servers.stop();
    await expect(ask(east)).rejects.toThrow();
    await servers.serve("north");
    expect(servers.endpoint("north")).toBeUndefined();
  });
});
