import { NODE_LEASE_NAMESPACE, providerIdOf, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { leases, nodes } from "../../kube/resources.ts";
import { remove } from "../shared/removal.ts";

/** Reports whether a node is the Cluster's virtual node, by label or by `spec.providerID`. */
export function isVirtualNodeOf({ metadata, spec }: Stored<KubeNode>, cluster: string): boolean {
  return metadata.labels?.[VIRTUAL_NODE_LABEL] === cluster || spec?.providerID === providerIdOf(cluster);
}

/** Removes the virtual node and its lease. Leaves a node of that name alone that is not Legation's. */
export async function removeVirtualNode(host: ClusterClient, cluster: string, signal: AbortSignal): Promise<void> {
  const name = virtualNodeName(cluster);
  const node = await host.find(nodes, { name }, { signal });
  if (node !== undefined && !isVirtualNodeOf(node, cluster)) return;
  if (node !== undefined) await remove(host, nodes, { name }, { uid: node.metadata.uid, signal });
  await remove(host, leases, { namespace: NODE_LEASE_NAMESPACE, name }, { signal });
}
