import type { Patch } from "../../../src/kube/client.ts";
import type { Selection } from "../../../src/kube/list.ts";
import { apiVersionOf } from "../../../src/kube/resources.ts";
import { partsOf } from "./answer-parts.ts";
import type { ApiServer, Write } from "./api-server.ts";
import { badRequest, notServed, type ServedResource } from "./refusal.ts";
import { createSubresource } from "./subresources.ts";

/** A request as it comes over HTTP. */
export interface RestRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly body?: object;
  readonly contentType?: string | undefined;
  /** Media types of the answer. */
  readonly accept?: string | undefined;
}

/** An object, or a collection, by its path. */
interface Route {
  readonly resource: ServedResource;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

const PATH =
  /^\/(?:api|apis\/([^/]+))\/([^/]+)(?:\/namespaces\/([^/]+)(?=\/(?!status$|finalize$)[^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/;

const PATCH_TYPES: Readonly<Record<string, Patch["type"]>> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
  "application/apply-patch+yaml": "apply",
};

/** Answers a request that is no watch. Throws a refusal. `by` is the field manager unless the query names one. */
export function answerTo(server: ApiServer, request: RestRequest, by: string): object | string {
  const { pathname, searchParams: query } = new URL(request.path, "http://localhost");
  if (pathname === "/readyz" || pathname === "/livez") return "ok";
  if (pathname === "/version") return server.kubernetesVersion;
  const isAggregated = request.accept?.includes("as=APIGroupDiscoveryList") === true;
  const discovery = isAggregated ? server.resources.aggregated(pathname) : server.resources.discovery(pathname);
  if (discovery !== undefined) return discovery;
  const { resource, namespace, name, subresource } = routeOf(server, pathname);
  const place = { ...(namespace === undefined ? {} : { namespace }), name: name ?? "" };
  const write: Write = {
    by: query.get("fieldManager") ?? by,
    dryRun: query.get("dryRun") === "All",
    subresource,
  };
  const body = request.body ?? {};
  const parts = { metadataOnly: request.accept?.includes("as=PartialObjectMetadata") === true };
  switch (request.method) {
    case "GET":
      if (name === undefined) return listed(server, resource, { ...selectionIn(query, namespace), ...parts }, query);
      return partsOf(server.get(resource, place), parts);
    case "POST":
      if (name !== undefined && subresource !== undefined)
        return createSubresource(server, resource, place, subresource, body);
      return partsOf(server.create(resource, { ...body }, write), parts);
    case "PUT":
      return partsOf(server.replace(resource, { ...body }, write), parts);
    case "PATCH":
      return partsOf(server.patch(resource, place, patchOf(request, query), write), parts);
    case "DELETE":
      return server.delete(resource, place, { ...deletionOptions(body), by });
    default:
      throw badRequest(`the method ${request.method} is not known`);
  }
}

/** Returns what a path names. Throws the refusal of a path that is not served. */
export function routeOf(server: ApiServer, pathname: string): Route {
  const [, group = "", version = "", namespace, plural = "", name, subresource] = PATH.exec(pathname) ?? [];
  const resource = server.resources.find(group, version, plural);
  if (resource === undefined) throw notServed();
  const decoded = (text: string | undefined): string | undefined => text && decodeURIComponent(text);
  return { resource, namespace: decoded(namespace), name: decoded(name), subresource };
}

function listed(
  server: ApiServer,
  resource: ServedResource,
  { metadataOnly, ...selection }: Selection & { readonly metadataOnly: boolean },
  query: URLSearchParams,
): object {
  const limit = query.get("limit");
  const token = query.get("continue");
  const { items, ...metadata } = server.list(resource, {
    ...selection,
    ...(limit === null ? {} : { limit: Number(limit) }),
    ...(token === null ? {} : { continue: token }),
  });
  const list = { kind: `${resource.kind}List`, apiVersion: apiVersionOf(resource), metadata };
  if (metadataOnly) return { ...list, items: items.map((item) => partsOf(item, { metadataOnly })) };
  // Items have no kind and apiVersion, as a real server's.
  return { ...list, items: items.map(({ kind: _kind, apiVersion: _version, ...item }) => item) };
}

/** Returns the selection of a list or watch. */
export function selectionIn(query: URLSearchParams, namespace: string | undefined): Selection {
  const labelSelector = query.get("labelSelector");
  const fieldSelector = query.get("fieldSelector");
  return {
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === null ? {} : { labelSelector }),
    ...(fieldSelector === null ? {} : { fieldSelector }),
  };
}

function patchOf({ contentType = "", body = {} }: RestRequest, query: URLSearchParams): Patch {
  const type = PATCH_TYPES[contentType];
  if (type === undefined) throw badRequest(`the content type ${contentType} is no patch`);
  if (type === "apply") return { type, body, force: query.get("force") === "true" };
  if (type !== "json") return { type, body };
  if (!Array.isArray(body)) throw badRequest("a JSON patch is a list");
  return { type, body };
}

interface DeletionBody {
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

function deletionOptions({ gracePeriodSeconds, preconditions }: DeletionBody): {
  gracePeriodSeconds?: number;
  uid?: string;
  resourceVersion?: string;
} {
  return { ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }), ...preconditions };
}
