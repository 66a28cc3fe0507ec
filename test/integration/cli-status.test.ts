import { afterAll, beforeAll, expect, test } from "vitest";
import { clusters } from "../../src/api/resources.ts";
import { CommandConnections } from "../../src/cli/shared/connections.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { pristine, removeLegation } from "../support/harness/pristine.ts";
import { eventually } from "../support/harness/wait.ts";
import { LegationRun, legationOn } from "../support/legation/process.ts";

let connections: CommandConnections;
let host: ClusterClient;
beforeAll(async () => {
  connections = new CommandConnections({}, "legation-test");
  host = (await connections.open({ kubeconfig: hostCluster().kubeconfig }, "host")).client;
  await pristine(hostCluster());
  expect(await legationOn(hostCluster(), "install", "--webhook-url", "https://127.0.0.1:1")).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await connections.close();
  await removeLegation(hostCluster());
});

test("shows the Clusters of the host", async () => {
  await host.create(clusters, {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name: "north" },
    spec: { credentialsSecret: { name: "member-north" } },
  });
  const { code, stdout } = await legationOn(hostCluster(), "status", "-o", "json");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ clusters: [{ name: "north", ready: "Unknown" }] });
  await host.delete(clusters, { name: "north" });
});

test("follows the Clusters of the host with -w, until it is interrupted", async () => {
  const run = new LegationRun(hostCluster(), ["status", "-w", "-o", "json"]);
  await eventually(() => run.stdout.includes('"clusters": []'), { what: "the first status" });
  await host.create(clusters, {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name: "south" },
    spec: { credentialsSecret: { name: "member-south" } },
  });
  await eventually(() => run.stdout.includes('"name": "south"'), { what: "the status after the change" });
  expect(await run.interrupt("SIGINT")).toBe(130);
  await host.delete(clusters, { name: "south" });
});

test.each([
  [["status", "deploymnt/web"], 2, "did you mean deployment?"],
  [["unjoin", "nroth"], 3, "did you mean north?"],
  [["kubeconfig", "nroth"], 3, "did you mean north?"],
  [["doctor", "--members", "nroth"], 2, "did you mean north?"],
])("tells of %j which name is meant", async (args, code, meant) => {
  await host.create(clusters, {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name: "north" },
    spec: { credentialsSecret: { name: "member-north" } },
  });
  try {
    const told = await legationOn(hostCluster(), ...args);
    expect(told.code).toBe(code);
    expect(told.stderr).toContain(meant);
  } finally {
    await host.delete(clusters, { name: "north" });
  }
});

test("reports that Legation is not installed on a host without it", async () => {
  expect(await legationOn(hostCluster(), "uninstall")).toMatchObject({ code: 0 });
  const { code, stderr } = await legationOn(hostCluster(), "status");
  expect(code).toBe(3);
  expect(stderr).toContain("Legation is not installed there");
});
