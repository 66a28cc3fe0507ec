import type { KubeObject } from "../api/kubernetes.ts";
import type { ClusterClient, ListOptions } from "../kube/client.ts";
import type { Resource } from "../kube/resources.ts";
import { isBefore } from "./resource-version.ts";

/**
 * The server's own version when it is behind `version`, as one that was restored from a backup; undefined when it is not. Such
 * a server would accept a watch from there, and tell of nothing until it has come that far again. Rejects with KubeError.
 */
export async function goneBackTo<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  version: string,
  options: Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector" | "signal">,
): Promise<string | undefined> {
  const { resourceVersion } = await client.list(resource, { ...options, limit: 1 });
  return isBefore(resourceVersion, version) ? resourceVersion : undefined;
}
