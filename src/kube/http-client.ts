import type {
  ClusterClient,
  Forwarder,
  ListOptions,
  Patch,
  PathUpgrades,
  RawRequest,
  RequestOptions,
  TableReads,
  WriteOptions,
} from "./client.ts";
import type { ClusterCredentials } from "./credentials.ts";
import { ignoring } from "./errors.ts";
import { yieldToEventLoop } from "./event-loop.ts";
import { jsonOf, jsonOrText, METADATA_LIST, objectOf, pageOf } from "./internal/answers.ts";
import { ServerConnections } from "./internal/connections.ts";
import { forward, forwardUpgrade } from "./internal/forward.ts";
import type { ApiRequest } from "./internal/request-sender.ts";
import { collectionPath, listPath, objectPath, withQuery } from "./internal/resource-paths.ts";
import { StreamOpener } from "./internal/stream.ts";
import { listTable, watchTable } from "./internal/table.ts";
import { type ConnectOptions, Transport } from "./internal/transport.ts";
import { upgrade } from "./internal/upgrade.ts";
import { warningsOf } from "./internal/warnings.ts";
import { METADATA_ONLY, watchEvents } from "./internal/watch.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import type { KubeObject, ObjectRef, Stored } from "./objects.ts";
import type { Resource } from "./resources.ts";

export type { ConnectOptions } from "./internal/transport.ts";

const PATCH_CONTENT_TYPES: Readonly<Record<Patch["type"], string>> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  // JSON is valid YAML, and API servers before 1.32 know only this media type.
  apply: "application/apply-patch+yaml",
};

// Characters that take about a millisecond to parse. Smaller responses are parsed at once.
const LARGE_ANSWER = 100_000;

const VERBS: Readonly<Record<RawRequest["method"], ApiRequest["verb"]>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

// A connection is opened when all others are in use, so that these are only as many as requests under way.
const MOST_SHARED_CONNECTIONS = 4_096;

/** Connections to one API server that several clients share. */
export type SharedConnections = ServerConnections;

/** Returns connections for clients that reach different clusters through one API server. */
export function shareConnections(credentials: ClusterCredentials): SharedConnections {
  return new ServerConnections({
    credentials,
    limits: { ...DEFAULT_LIMITS, concurrency: MOST_SHARED_CONNECTIONS },
  });
}

/** Creates a client for one cluster. Opens no connection before the first request. */
export function createClusterClient(options: ConnectOptions): ClusterClient & PathUpgrades & TableReads {
  const transport = new Transport(options);
  const streams = new StreamOpener(transport);
  const send = async <T extends KubeObject>(
    resource: Resource<T>,
    request: ApiRequest,
    { onWarning, dropManagedFields }: WriteOptions = {},
  ): Promise<Stored<T>> => {
    const { text, headers } = await transport.send(request);
    if (onWarning !== undefined) for (const warning of warningsOf(headers)) onWarning(warning);
    return objectOf(transport, resource, { text, request, dropManagedFields });
  };
  const client: ClusterClient & PathUpgrades & TableReads = {
    cluster: transport.cluster,
    get: async (resource, ref, asked) =>
      send(resource, { verb: "get", method: "GET", ...at(resource, ref), ...limits(asked) }),
    find: (resource, ref, asked) => ignoring(client.get(resource, ref, asked), "NotFound"),
    list: async (resource, asked: ListOptions = {}) => {
      const request: ApiRequest = {
        verb: "list",
        method: "GET",
        plural: resource.plural,
        namespace: asked.namespace,
        path: listPath(resource, asked),
        accept: asked.metadataOnly === true ? METADATA_LIST : undefined,
        ...limits(asked),
        mayGoOn: true,
      };
      const { text } = await transport.send(request);
      if (text.length > LARGE_ANSWER) await yieldToEventLoop();
      return pageOf(transport, resource, { text, request, dropManagedFields: asked.dropManagedFields });
    },
    create: async (resource, object, asked: WriteOptions = {}) => {
      const { namespace, name } = object.metadata ?? {};
      const { subresource } = asked;
      const path =
        subresource === undefined || name === undefined
          ? collectionPath(resource, namespace)
          : objectPath(resource, { namespace, name }, subresource);
      const target = { plural: plural(resource, subresource), namespace, name, path };
      return send(resource, { verb: "create", method: "POST", ...write(target, object, asked) }, asked);
    },
    createSubresource: async (resource, ref, subresource, body, asked) => {
      const request: ApiRequest = {
        verb: "create",
        method: "POST",
        ...at(resource, ref, subresource),
        body: JSON.stringify(body),
        ...limits(asked),
      };
      const { text } = await transport.send(request);
      return jsonOf(transport, { text, request });
    },
    replace: async (resource, object, asked: WriteOptions = {}) => {
      const { namespace, name = "" } = object.metadata ?? {};
      const target = at(resource, { namespace, name }, asked.subresource);
      return send(resource, { verb: "update", method: "PUT", ...write(target, object, asked) }, asked);
    },
    patch: async (resource, ref, patch, asked: WriteOptions = {}) => {
      const force = patch.type === "apply" ? patch.force : undefined;
      const target = at(resource, ref, asked.subresource);
      const contentType = PATCH_CONTENT_TYPES[patch.type];
      const written = write(target, patch.body, asked, force);
      return send(resource, { verb: "patch", method: "PATCH", ...written, contentType }, asked);
    },
    delete: async (resource, ref, asked = {}) => {
      const { gracePeriodSeconds, uid, resourceVersion, propagationPolicy } = asked;
      const preconditions = uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
      const kind = { apiVersion: "v1", kind: "DeleteOptions" };
      await transport.send({
        verb: "delete",
        method: "DELETE",
        ...at(resource, ref),
        body: JSON.stringify({ ...kind, gracePeriodSeconds, preconditions, propagationPolicy }),
        ...limits(asked),
      });
    },
    raw: async (asked) => {
      const { method, path, body, contentType, accept } = asked;
      const request: ApiRequest = {
        verb: VERBS[method],
        method,
        // The path goes into the name, so that metrics have one label for all raw requests.
        plural: "raw",
        name: path,
        path,
        body: body === undefined ? undefined : JSON.stringify(body),
        contentType,
        accept,
        ...limits(asked),
      };
      return jsonOrText(transport, (await transport.send(request)).text, request);
    },
    watch: (resource, asked) => watchEvents(transport, resource, asked),
    listTable: (resource, asked) => listTable(transport, resource, asked),
    watchTable: (resource, asked) => watchTable(transport, resource, asked),
    upgrade: (resource, ref, subresource, asked) => upgrade(transport, { ...at(resource, ref, subresource), ...asked }),
    // As in `raw`, the path is the name.
    upgradePath: (path, asked) =>
      upgrade(transport, { plural: "raw", namespace: undefined, name: path, path, ...asked }),
    stream: (resource, ref, subresource, asked) => streams.open({ ...at(resource, ref, subresource), ...asked }),
    close: () => transport.close(),
  };
  return client;
}

/** Creates a forwarder. Opens no connection before the first request. */
export function createForwarder(
  options: Pick<ConnectOptions, "cluster" | "credentials" | "dial" | "limits">,
): Forwarder {
  const transport = new Transport({ ...options, untrusted: true });
  return {
    forward: (request) => forward(transport, request),
    upgrade: (request, protocol) => forwardUpgrade(transport, request, protocol),
    close: () => transport.close(),
  };
}

function plural(resource: Resource<KubeObject>, subresource: string | undefined): string {
  return subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
}

type Target = Pick<ApiRequest, "plural" | "namespace" | "name" | "path">;

function at(resource: Resource<KubeObject>, ref: ObjectRef, subresource?: string): Target {
  return {
    plural: plural(resource, subresource),
    namespace: ref.namespace,
    name: ref.name,
    path: objectPath(resource, ref, subresource),
  };
}

function limits(options: RequestOptions | undefined): Pick<ApiRequest, "signal" | "timeoutMs" | "outOfTurn"> {
  return { signal: options?.signal, timeoutMs: options?.timeoutMs, outOfTurn: options?.outOfTurn };
}

/** Returns the parts that requests with an object in body and answer share. */
function write(
  target: Target,
  body: object,
  options: WriteOptions,
  force?: boolean,
): Omit<ApiRequest, "verb" | "method"> {
  const { fieldManager, dryRun, metadataOnly } = options;
  return {
    ...target,
    path: withQuery(target.path, { fieldManager, dryRun: dryRun === true ? "All" : undefined, force }),
    body: JSON.stringify(body),
    accept: metadataOnly === true ? METADATA_ONLY : undefined,
    ...limits(options),
  };
}
