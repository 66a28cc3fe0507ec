import type { ClusterClient } from "../../kube/client.ts";
import { pods } from "../../kube/resources.ts";
import { readable } from "../shared/reading.ts";

/**
 * Returns the first of the namespaces whose pods a user may list who may not list those of all. Undefined: the user may list all, or
 * those of none of them. Rejects with KubeError.
 */
export async function confinedTo(
  host: ClusterClient,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const one = { limit: 1, metadataOnly: true, signal };
  if ((await readable(host.list(pods, one))) !== undefined) return undefined;
  for (const namespace of namespaces) {
    if ((await readable(host.list(pods, { ...one, namespace }))) !== undefined) return namespace;
  }
  return undefined;
}

/** Returns the namespace of a service account by its name as a user. Undefined for other users. */
export function accountNamespace(user: string): string | undefined {
  return /^system:serviceaccount:([^:]+):[^:]+$/.exec(user)?.[1];
}
