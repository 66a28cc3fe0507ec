import { afterAll, beforeAll, expect, test } from "vitest";
import { clusters } from "../../src/api/resources.ts";
import { Connections } from "../../src/cli/shared/connections.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { pristine, removeLegation } from "../support/harness/pristine.ts";
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

test("reports that Legation is not installed on a host without it", async () => {
  expect(await legationOn(hostCluster(), "uninstall")).toMatchObject({ code: 0 });
  const { code, stderr } = await legationOn(hostCluster(), "status");
  expect(code).toBe(3);
  expect(stderr).toContain("Legation is not installed there");
});
