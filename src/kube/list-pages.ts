import type { KubeObject, Stored } from "../api/kubernetes.ts";
import type { ClusterClient, ListOptions } from "./client.ts";
import type { Resource } from "./resources.ts";

const PAGE_SIZE = 500;

/** All objects of a list, page by page: no answer is as large as the cluster. Rejects with KubeError. */
export async function* listPages<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  options: Omit<ListOptions, "limit" | "continue">,
): AsyncGenerator<readonly Stored<T>[]> {
  let token: string | undefined;
  do {
    const following = token === undefined ? {} : { continue: token };
    const page = await client.list(resource, { ...options, limit: PAGE_SIZE, ...following });
    yield page.items;
    token = page.continue;
  } while (token !== undefined);
}
