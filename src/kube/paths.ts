import type { KubeObject, ObjectRef } from "../api/kubernetes.ts";
import type { Resource } from "./resources.ts";

/** Query parameters; what is undefined is left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** `/api/v1/namespaces/default/pods`, or without a namespace the path over all of them. */
export function collectionPath(resource: Resource<KubeObject>, namespace?: string): string {
  const root = resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  return resource.namespaced && namespace !== undefined
    ? `${root}/namespaces/${encodeURIComponent(namespace)}/${resource.plural}`
    : `${root}/${resource.plural}`;
}

/** Path of one object, or of one of its subresources. */
export function objectPath(resource: Resource<KubeObject>, ref: ObjectRef, subresource?: string): string {
  const path = `${collectionPath(resource, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** `path` with a query in which a name may be there more than once. */
export function withSearch(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`;
}

/** `path` with a query string. */
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

/** How errors name a request's object: `pods default/web-0`. */
export function describeTarget(plural: string, namespace?: string, name?: string): string {
  if (name === undefined) return namespace === undefined ? plural : `${plural} in ${namespace}`;
  return namespace === undefined ? `${plural} ${name}` : `${plural} ${namespace}/${name}`;
}
