import type { ClusterClient } from "../kube/client.ts";
import type { Selection } from "../kube/list.ts";
import type { KubeObject, Stored } from "../kube/objects.ts";
import type { Resource } from "../kube/resources.ts";

export function sameVersion(a: Stored<KubeObject>, b: Stored<KubeObject>): boolean {
  return a.metadata.resourceVersion === b.metadata.resourceVersion;
}

/** Compares resource versions of one resource as decimal numbers (KEP-5504, stable since 1.35). */
export function isBefore(version: string, other: string): boolean {
  return version.length === other.length ? version < other : version.length < other.length;
}

/** Reports whether both are states of one object, not of two by the same name. */
export function sameUid(a: Stored<KubeObject>, b: Stored<KubeObject>): boolean {
  return a.metadata.uid === b.metadata.uid;
}

/** A server whose etcd was restored accepts a watch from `version`, and stays silent until it reaches that. */
export async function rolledBackTo<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  version: string,
  options: Selection & { readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { resourceVersion } = await client.list(resource, { ...options, limit: 1 });
  return isBefore(resourceVersion, version) ? resourceVersion : undefined;
}
