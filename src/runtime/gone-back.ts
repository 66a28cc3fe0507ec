import type { KubeObject } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Resource } from "../kube/resources.ts";
import { isBefore } from "./resource-version.ts";
import type { Selection } from "./selection.ts";

/**
 * Returns the server's current version when it is older than `version` (etcd was restored from a backup), else undefined.
 * Such a server accepts a watch from `version` and stays silent until it reaches it again. Rejects with KubeError.
 */
export async function goneBackTo<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  version: string,
  options: Selection & { readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { resourceVersion } = await client.list(resource, { ...options, limit: 1 });
  return isBefore(resourceVersion, version) ? resourceVersion : undefined;
}
