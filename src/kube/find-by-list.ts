import type { KubeObject, Stored } from "../api/kubernetes.ts";
import type { ClusterClient } from "./client.ts";
import type { Resource } from "./resources.ts";

/** Finds one object with a list by name, which needs the verb `list` only, not `get`. */
export async function findByList<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  { namespace, name }: { readonly namespace?: string; readonly name: string },
  signal: AbortSignal,
): Promise<Stored<T> | undefined> {
  const place = namespace === undefined ? {} : { namespace };
  const { items } = await client.list(resource, { ...place, fieldSelector: `metadata.name=${name}`, signal });
  return items[0];
}
