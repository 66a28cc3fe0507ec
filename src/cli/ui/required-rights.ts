import type { ClusterClient } from "../../kube/client.ts";
import { pods } from "../../kube/resources.ts";
import { asViewer, listClusters, readable } from "../shared/reading.ts";

/**
 * Rejects with `Failure`, which names the missing role, for a user who may see nothing of the page. For the page of one namespace,
 * rights in it are enough.
 */
export async function requireRights(
  host: ClusterClient,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (namespace === undefined) {
    await asViewer(listClusters(host, signal), "; with `-n NAMESPACE`, rights in one namespace are enough");
    return;
  }
  // Refuses a host without Legation.
  await readable(listClusters(host, signal));
  await asViewer(host.list(pods, { namespace, limit: 1, metadataOnly: true, signal }));
}
