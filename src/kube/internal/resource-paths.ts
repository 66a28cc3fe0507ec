import type { ListOptions } from "../client.ts";
import type { KubeObject, ObjectRef } from "../objects.ts";
import type { Resource } from "../resources.ts";

/** Query parameters; undefined ones are omitted. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Returns a collection's path: `/api/v1/namespaces/default/pods`, or the path over all namespaces. */
export function collectionPath(resource: Resource<KubeObject>, namespace?: string): string {
  const root = resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  return resource.namespaced && namespace !== undefined
    ? `${root}/namespaces/${encodeURIComponent(namespace)}/${resource.plural}`
    : `${root}/${resource.plural}`;
}

export function listPath(resource: Resource<KubeObject>, options: ListOptions, added: Query = {}): string {
  const { namespace, labelSelector, fieldSelector, limit, continue: token, resourceVersion } = options;
  const query = { labelSelector, fieldSelector, limit, continue: token, resourceVersion, ...added };
  return withQuery(collectionPath(resource, namespace), query);
}

export function objectPath(resource: Resource<KubeObject>, ref: ObjectRef, subresource?: string): string {
  const path = `${collectionPath(resource, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Appends a query in which a name may occur more than once. */
export function withSearch(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`;
}

export function withQuery(path: string, query: Query): string {
  let result = path;
  let separator = "?";
  for (const name in query) {
    const value = query[name];
    if (value === undefined) continue;
    result += `${separator}${name}=${encodeURIComponent(value)}`;
    separator = "&";
  }
  return result;
}
