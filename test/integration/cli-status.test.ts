import { afterAll, beforeAll, expect, test } from "vitest";
import { clusters } from "../../src/api/resources.ts";
import { Connections } from "../../src/cli/shared/connections.ts";
import type { Snapshot } from "../../src/cli/status/clusters.ts";
import { followSnapshot, readSnapshot } from "../../src/cli/status/snapshot.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { pristine } from "../support/harness/pristine.ts";
import { eventually } from "../support/harness/wait.ts";
import { legationOn } from "../support/legation/process.ts";

let connections: Connections;
let host: ClusterClient;
beforeAll(async () => {
  connections = new Connections({}, "legation-test");
  host = (await connections.open({ kubeconfig: hostCluster().kubeconfig }, "host")).client;
  await pristine(hostCluster());
  expect(await legationOn(hostCluster(), "install", "--webhook-url", "https://127.0.0.1:1")).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await connections.close();
  await legationOn(hostCluster(), "uninstall", "--force");
});

const namesIn = (snapshot: Snapshot | undefined): string[] =>
  (snapshot?.clusters ?? []).map(({ metadata }) => metadata.name);

test("prints the present state with status -w, then every change, until it is interrupted", async () => {
  const interruption = new AbortController();
  const shown: Snapshot[] = [];
  const following = followSnapshot(host, (snapshot) => shown.push(snapshot), interruption.signal);
  const ended = expect(following).rejects.toThrow("enough");
  await eventually(() => shown.length > 0);
  expect(namesIn(shown[0])).toEqual([]);

  await host.create(clusters, {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name: "north" },
    spec: { credentialsSecret: { name: "member-north" } },
  });
  await eventually(() => namesIn(shown.at(-1)).includes("north"));
  expect(namesIn(await readSnapshot(host, interruption.signal))).toEqual(["north"]);
  await host.delete(clusters, { name: "north" });
  await eventually(() => namesIn(shown.at(-1)).length === 0);

  interruption.abort(new Error("enough"));
  await ended;
});

test("reports that Legation is not installed on a host without it", async () => {
  expect(await legationOn(hostCluster(), "uninstall")).toMatchObject({ code: 0 });
  for (const args of [["status"], ["status", "-w"]]) {
    const { code, stderr } = await legationOn(hostCluster(), ...args);
    expect(code).toBe(3);
    expect(stderr).toContain("Legation is not installed there");
  }
});
