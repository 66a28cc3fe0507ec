import type { ClusterClient } from "../kube/client.ts";
import { namespaces } from "../kube/resources.ts";

/** A cluster's id: the uid of its kube-system namespace, which lives exactly as long as the cluster. */
export async function clusterId(client: ClusterClient, signal: AbortSignal): Promise<string> {
  const { metadata } = await client.get(namespaces, { name: "kube-system" }, { signal });
  return metadata.uid;
}
