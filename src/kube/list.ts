import type { ClusterClient, ListOptions } from "./client.ts";
import type { KubeObject, ObjectRef, Stored } from "./objects.ts";
import type { Resource } from "./resources.ts";

/** Objects of one request of a list, as kubectl's --chunk-size. */
export const PAGE_SIZE = 500;

/** Longest silence of a server while it lists a page; ms. 500 large objects take longer than an ordinary request. */
export const LIST_TIMEOUT_MS = 30_000;

/** Yields all objects of a list, page by page, to bound the size of each response. Rejects with KubeError. */
export async function* listPages<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  options: Omit<ListOptions, "limit" | "continue">,
): AsyncGenerator<readonly Stored<T>[]> {
  let token: string | undefined;
  do {
    const page = await client.list(resource, {
      timeoutMs: LIST_TIMEOUT_MS,
      ...options,
      limit: PAGE_SIZE,
      continue: token,
    });
    yield page.items;
    token = page.continue;
  } while (token !== undefined);
}

/** Returns all objects of a list, or those that are `wanted`, read page by page. Rejects with KubeError. */
export async function listAll<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  options: Parameters<typeof listPages>[2],
  wanted: (object: Stored<T>) => boolean = () => true,
): Promise<Stored<T>[]> {
  const items: Stored<T>[] = [];
  for await (const page of listPages(client, resource, options)) items.push(...page.filter(wanted));
  return items;
}

/** Finds one object with a list by name, which needs the verb `list` only, not `get`. */
export async function findByList<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  { namespace, name }: ObjectRef,
  signal: AbortSignal,
  answer: Pick<ListOptions, "metadataOnly"> = {},
): Promise<Stored<T> | undefined> {
  const fieldSelector = `metadata.name=${name}`;
  const { items } = await client.list(resource, { namespace, ...answer, fieldSelector, signal });
  return items[0];
}

/** The objects of a resource that are listed and watched. */
export type Selection = Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector">;

export function selectionOf({ namespace, labelSelector, fieldSelector }: Selection): Selection {
  return { namespace, labelSelector, fieldSelector };
}
