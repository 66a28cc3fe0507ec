import { expect, test } from "vitest";
import type { KubeNode } from "../../../../src/api/kubernetes.ts";
import { uninstall } from "../../../../src/cli/uninstall/uninstall.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { clusters, leases, nodes } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../join/memory-cluster.ts";

/** A host whose nodes have no label of Legation any more. */
function withoutLabels({ client }: MemoryCluster): ClusterClient {
  const list: ClusterClient["list"] = async (resource, options) =>
    resource.plural === nodes.plural && options?.labelSelector !== undefined
      ? { items: [], resourceVersion: "1", size: 0 }
      : await client.list(resource, options);
  return { ...client, list };
}

async function uninstallFrom(host: MemoryCluster): Promise<void> {
  host.put(clusters, { metadata: { name: "west" }, spec: { credentialsSecret: { name: "west" } } } as object);
  const connectText = () => Promise.reject(new Error("there are no credentials"));
  const { signal } = new AbortController();
  await uninstall([], { force: false }, { host: withoutLabels(host), connectText, signal, report: () => {} });
}

test("a virtual node that has lost its label goes with its Cluster and its Lease", async () => {
  const host = new MemoryCluster("host", "host-1");
  const node: KubeNode = { metadata: { name: "legation-west" }, spec: { providerID: "legation://west" } };
  const lease = { namespace: "kube-node-lease", name: "legation-west" };
  host.put(nodes, node);
  host.put(leases, { metadata: lease });
  await uninstallFrom(host);
  expect(host.peek(nodes, { name: "legation-west" })).toBeUndefined();
  expect(host.peek(leases, lease)).toBeUndefined();
});

test("a node of the host's own by the name of a virtual node stays, and its Lease", async () => {
  const host = new MemoryCluster("host", "host-1");
  const lease = { namespace: "kube-node-lease", name: "legation-west" };
  host.put(nodes, { metadata: { name: "legation-west" } });
  host.put(leases, { metadata: lease });
  await uninstallFrom(host);
  expect(host.peek(nodes, { name: "legation-west" })).toBeDefined();
  expect(host.peek(leases, lease)).toBeDefined();
});
