import { expect, test } from "vitest";
import type { KubeNode } from "../../../../src/api/kubernetes.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { uninstall } from "../../../../src/cli/uninstall/uninstall.ts";
import { jobs, leases, nodes, pods } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../join/memory-cluster.ts";

async function uninstallFrom(host: MemoryCluster, joined = ["west"]): Promise<void> {
  for (const name of joined)
    host.put(clusters, { metadata: { name }, spec: { credentialsSecret: { name } } } as object);
  const connectText = () => Promise.reject(new Error("there are no credentials"));
  const { signal } = new AbortController();
  await uninstall([], { force: false }, { host: host.client, connectText, signal, report: () => {} });
}

test.each([
  ["with its Cluster", ["west"]],
  ["when its Cluster is gone, too", []],
])("removes a virtual node without its label, and its Lease, %s", async (_when, joined) => {
  const host = new MemoryCluster("host", "host-1");
  const node: KubeNode = { metadata: { name: "legation-west" }, spec: { providerID: "legation://west" } };
  const lease = { namespace: "kube-node-lease", name: "legation-west" };
  host.put(nodes, node);
  host.put(leases, { metadata: lease });
  await uninstallFrom(host, joined);
  expect(host.peek(nodes, { name: "legation-west" })).toBeUndefined();
  expect(host.peek(leases, lease)).toBeUndefined();
});

test.each([
  ["without a providerID", undefined, ["west"]],
  ["without a providerID, and no Cluster,", undefined, []],
  ["with a cloud's providerID", "kind://docker/host/legation-west", []],
  ["with the providerID of another virtual node", "legation://east", []],
])("keeps a node of the host's own by a virtual node's name, %s and its Lease", async (_which, providerID, joined) => {
  const host = new MemoryCluster("host", "host-1");
  const lease = { namespace: "kube-node-lease", name: "legation-west" };
  const node: KubeNode = {
    metadata: { name: "legation-west" },
    spec: providerID === undefined ? {} : { providerID },
  };
  host.put(nodes, node);
  host.put(leases, { metadata: lease });
  await uninstallFrom(host, joined);
  expect(host.peek(nodes, { name: "legation-west" })).toBeDefined();
  expect(host.peek(leases, lease)).toBeDefined();
});

test("refuses while whole Jobs have not finished, and names them beside pods", async () => {
  const host = new MemoryCluster("host", "host-1");
  const labels = { "legation.dev/whole": "true" };
  const conditions = [{ type: "Complete", status: "True" }];
  host.put(jobs, { metadata: { name: "sum", namespace: "team", labels } });
  host.put(jobs, { metadata: { name: "done", namespace: "team", labels }, status: { conditions } });
  await expect(uninstallFrom(host, [])).rejects.toMatchObject({
    exit: "refused",
    message: expect.stringContaining("1 whole Job has not finished: Job team/sum"),
  });
  host.put(pods, { metadata: { name: "web", namespace: "team", labels: { "legation.dev/proxy": "true" } } });
  await expect(uninstallFrom(host, [])).rejects.toThrow(
    "1 delegated pod and 1 whole Job have not finished: team/web, Job team/sum",
  );
});
