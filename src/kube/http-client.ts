import type {
  ClientMetrics,
  ClusterClient,
  DeleteOptions,
  Dial,
  ListOptions,
  ListPage,
  Patch,
  PathUpgrades,
  RawRequest,
  RequestOptions,
  StreamAnswer,
  StreamOptions,
  TableOptions,
  TableReads,
  UpgradeAnswer,
  UpgradeOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "./client.ts";
import type { ClusterCredentials } from "./credentials.ts";
import { isKubeError } from "./errors.ts";
import { yieldToEventLoop } from "./event-loop.ts";
import { Answers, METADATA_LIST } from "./internal/answers.ts";
import type { ApiRequest } from "./internal/request-sender.ts";
import { collectionPath, objectPath, withQuery } from "./internal/resource-paths.ts";
import { StreamOpener } from "./internal/stream.ts";
import { listTable, watchTable } from "./internal/table.ts";
import { Transport } from "./internal/transport.ts";
import { upgrade } from "./internal/upgrade.ts";
import { warningsOf } from "./internal/warnings.ts";
import { METADATA_ONLY, watchEvents } from "./internal/watch.ts";
import { type ClientLimits, DEFAULT_LIMITS } from "./limits.ts";
import type { KubeObject, ObjectRef, Stored } from "./objects.ts";
import type { Resource } from "./resources.ts";
import type { TableEvent, TablePage } from "./tables.ts";

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

/** The settings of a cluster's client. */
export interface ConnectOptions {
  /** The cluster's name in errors and metrics. */
  readonly cluster: string;
  readonly credentials: ClusterCredentials;
  readonly limits?: Partial<ClientLimits>;
  readonly userAgent?: string;
  readonly metrics?: ClientMetrics;
  /** Returns the rest of the leader's lease in ms, which limits every write. Undefined: no limit. */
  readonly leaseLeftMs?: () => number | undefined;
  /** The server is under foreign control: responses are validated and limited in size. */
  readonly untrusted?: boolean;
  /** Opens the connections; without it, the address of the credentials is connected to. */
  readonly dial?: Dial | undefined;
}

/** Creates a client for one cluster. Opens no connection before the first request. */
export function createClusterClient(options: ConnectOptions): ClusterClient & PathUpgrades & TableReads {
  const { cluster, credentials, metrics, leaseLeftMs, untrusted, dial, userAgent = "kube-client" } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  return new HttpClient(
    new Transport({ cluster, credentials, limits, userAgent, metrics, leaseLeftMs, untrusted, dial }),
  );
}

/** The `ClusterClient` over HTTP. */
class HttpClient implements ClusterClient, PathUpgrades, TableReads {
  readonly cluster: string;
  readonly #transport: Transport;
  readonly #answers: Answers;
  readonly #streams: StreamOpener;

  constructor(transport: Transport) {
    this.cluster = transport.cluster;
    this.#transport = transport;
    this.#answers = new Answers(transport);
    this.#streams = new StreamOpener(transport);
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: RequestOptions): Promise<Stored<T>> {
    return this.#sendFor(resource, { verb: "get", method: "GET", ...at(resource, ref), ...limits(options) });
  }

  async find<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options?: RequestOptions,
  ): Promise<Stored<T> | undefined> {
    try {
      return await this.get(resource, ref, options);
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ListPage<T>> {
    const { namespace, labelSelector, fieldSelector, limit, resourceVersion } = options;
    const query = {
      labelSelector,
      fieldSelector,
      limit,
      continue: options.continue,
      resourceVersion,
    };
    const request: ApiRequest = {
      verb: "list",
      method: "GET",
      plural: resource.plural,
      namespace,
      path: withQuery(collectionPath(resource, namespace), query),
      ...(options.metadataOnly === true ? { accept: METADATA_LIST } : {}),
      ...limits(options),
      mayGoOn: true,
    };
    const { text } = await this.#transport.send(request);
    if (text.length > LARGE_ANSWER) await yieldToEventLoop();
    return this.#answers.page(resource, text, { request, options });
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<Stored<T>> {
    const { namespace, name } = object.metadata ?? {};
    const path =
      options.subresource === undefined || name === undefined
        ? collectionPath(resource, namespace)
        : objectPath(resource, { name, ...(namespace === undefined ? {} : { namespace }) }, options.subresource);
    return this.#sendFor(
      resource,
      {
        verb: "create",
        method: "POST",
        plural: plural(resource, options.subresource),
        namespace,
        name,
        path: withQuery(path, writeQuery(options)),
        body: JSON.stringify(object),
        ...answerOf(options),
        ...limits(options),
      },
      options,
    );
  }

  async createSubresource(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    body: object,
    options?: RequestOptions,
  ): Promise<unknown> {
    const request: ApiRequest = {
      verb: "create",
      method: "POST",
      ...at(resource, ref, subresource),
      body: JSON.stringify(body),
      ...limits(options),
    };
    return this.#answers.json((await this.#transport.send(request)).text, request);
  }

  async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<Stored<T>> {
    const { namespace, name = "" } = object.metadata ?? {};
    const target = at(resource, { name, ...(namespace === undefined ? {} : { namespace }) }, options.subresource);
    return this.#sendFor(
      resource,
      {
        verb: "update",
        method: "PUT",
        ...target,
        path: withQuery(target.path, writeQuery(options)),
        body: JSON.stringify(object),
        ...answerOf(options),
        ...limits(options),
      },
      options,
    );
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options: WriteOptions = {},
  ): Promise<Stored<T>> {
    const target = at(resource, ref, options.subresource);
    const force = patch.type === "apply" ? patch.force : undefined;
    return this.#sendFor(
      resource,
      {
        verb: "patch",
        method: "PATCH",
        ...target,
        path: withQuery(target.path, { ...writeQuery(options), force }),
        body: JSON.stringify(patch.body),
        contentType: PATCH_CONTENT_TYPES[patch.type],
        ...answerOf(options),
        ...limits(options),
      },
      options,
    );
  }

  async delete(resource: Resource<KubeObject>, ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    const { gracePeriodSeconds, uid, resourceVersion, propagationPolicy } = options;
    const preconditions = uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
    await this.#transport.send({
      verb: "delete",
      method: "DELETE",
      ...at(resource, ref),
      body: JSON.stringify({
        apiVersion: "v1",
        kind: "DeleteOptions",
        gracePeriodSeconds,
        preconditions,
        propagationPolicy,
      }),
      ...limits(options),
    });
  }

  async raw(request: RawRequest): Promise<unknown> {
    const wire: ApiRequest = {
      verb: VERBS[request.method],
      method: request.method,
      // The path goes into the name, so that metrics have one label for all raw requests.
      plural: "raw",
      name: request.path,
      path: request.path,
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      ...(request.contentType === undefined ? {} : { contentType: request.contentType }),
      ...(request.accept === undefined ? {} : { accept: request.accept }),
      ...limits(request),
    };
    return this.#answers.jsonOrText((await this.#transport.send(wire)).text, wire);
  }

  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    return watchEvents(this.#transport, resource, options);
  }

  listTable(resource: Resource<KubeObject>, options: TableOptions): Promise<TablePage> {
    return listTable(this.#transport, resource, options);
  }

  watchTable(
    resource: Resource<KubeObject>,
    options: WatchOptions & Pick<TableOptions, "includeObject">,
  ): AsyncIterable<TableEvent> {
    return watchTable(this.#transport, resource, options);
  }

  upgrade(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    options: UpgradeOptions,
  ): Promise<UpgradeAnswer> {
    return upgrade(this.#transport, { ...at(resource, ref, subresource), ...options });
  }

  upgradePath(path: string, options: UpgradeOptions): Promise<UpgradeAnswer> {
    // As in `raw`, the path is the name.
    return upgrade(this.#transport, { plural: "raw", namespace: undefined, name: path, path, ...options });
  }

  stream(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    options: StreamOptions,
  ): Promise<StreamAnswer> {
    return this.#streams.open({ ...at(resource, ref, subresource), ...options });
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  /** Returns the object of the answer. */
  async #sendFor<T extends KubeObject>(
    resource: Resource<T>,
    request: ApiRequest,
    options: WriteOptions = {},
  ): Promise<Stored<T>> {
    const { text, headers } = await this.#transport.send(request);
    const { onWarning } = options;
    if (onWarning !== undefined) for (const warning of warningsOf(headers)) onWarning(warning);
    return this.#answers.object(resource, text, { request, options });
  }
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

function answerOf({ metadataOnly }: WriteOptions): Pick<ApiRequest, "accept"> {
  return metadataOnly === true ? { accept: METADATA_ONLY } : {};
}

function limits(options: RequestOptions | undefined): Pick<ApiRequest, "signal" | "timeoutMs" | "outOfTurn"> {
  return { signal: options?.signal, timeoutMs: options?.timeoutMs, outOfTurn: options?.outOfTurn };
}

function writeQuery({ fieldManager, dryRun }: WriteOptions): {
  fieldManager: string | undefined;
  dryRun: string | undefined;
} {
  return { fieldManager, dryRun: dryRun === true ? "All" : undefined };
}
