import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import type { KubeObject, ObjectRef, Stored } from "./objects.ts";
import type { Resource } from "./resources.ts";
import type { TableEvent, TablePage } from "./tables.ts";

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Deadline of the whole request, including the wait for a slot, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined;
  /** Skips the queue and the rate limit. For probes and node heartbeats, which a backlog must not delay. */
  readonly outOfTurn?: boolean | undefined;
}

interface AnswerOptions {
  /** Removes `metadata.managedFields` before the response is parsed, which halves memory and work. */
  readonly dropManagedFields?: boolean | undefined;
  /** Asks for the metadata of objects only (PartialObjectMetadata), which is cheaper to encode and parse. */
  readonly metadataOnly?: boolean | undefined;
}

/** The objects to list or watch. */
interface Selection extends AnswerOptions {
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends RequestOptions, Selection {
  /** Page size. Default: no paging. */
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface ListPage<T extends KubeObject> {
  readonly items: Stored<T>[];
  readonly resourceVersion: string;
  /** Estimated heap bytes of the page. */
  readonly size: number;
  /** Token of the next page; absent on the last. */
  readonly continue?: string;
}

export interface WriteOptions extends RequestOptions, AnswerOptions {
  readonly fieldManager?: string | undefined;
  readonly dryRun?: boolean | undefined;
  /** Such as `status`, `binding` or `token`. */
  readonly subresource?: string | undefined;
  /** Clients that hold creates back ask it when the turn of one has come: false rejects the create with NotSent. */
  readonly isWanted?: (() => boolean) | undefined;
  /** Called with each warning in the response to a success, such as `unknown field "spec.x"`. */
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** A patch of one of the API server's four types. `apply` is server-side apply. */
export type Patch =
  | { readonly type: "json"; readonly body: readonly object[] }
  | { readonly type: "merge" | "strategic"; readonly body: object }
  | { readonly type: "apply"; readonly body: object; readonly force?: boolean };

export interface DeleteOptions extends RequestOptions {
  readonly gracePeriodSeconds?: number | undefined;
  /** Preconditions: the server answers Conflict when they do not hold. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: "Foreground" | "Background" | "Orphan" | undefined;
}

export interface RawRequest extends RequestOptions {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with query, such as `/readyz` or `/apis/authentication.k8s.io/v1/tokenreviews`. */
  readonly path: string;
  readonly body?: object;
  readonly contentType?: string | undefined;
  /** Media types of the response; default JSON. */
  readonly accept?: string | undefined;
}

export type WatchEvent<T extends KubeObject> =
  | {
      readonly type: "ADDED" | "MODIFIED" | "DELETED";
      readonly object: Stored<T>;
      /** Estimated heap bytes of the object. */
      readonly size: number;
    }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

export interface WatchOptions extends Selection {
  readonly resourceVersion: string;
  /** Seconds after which the server ends the watch. */
  readonly timeoutSeconds?: number | undefined;
  /** Silence after which the connection counts as dead, in milliseconds. Default: slightly more than `timeoutSeconds`. */
  readonly idleTimeoutMs?: number | undefined;
  /** Namespaces whose events matter. The client may leave out those of others, which it then need not parse. */
  readonly isWanted?: ((namespace: string) => boolean) | undefined;
  /** Called when the server accepts the watch. */
  readonly onOpen?: (() => void) | undefined;
  readonly signal: AbortSignal;
}

/** Opens a connection to an API server that has no address to connect to. Rejects when the signal fires. */
export type Dial = (signal: AbortSignal) => Promise<Socket>;

/** A request to upgrade a subresource's connection to another protocol. */
export interface UpgradeOptions {
  readonly method: "GET" | "POST";
  readonly query: URLSearchParams;
  /** Value of the Upgrade header, e.g. `SPDY/3.1` or `websocket`. */
  readonly protocol: string;
  /** Additional headers of the protocol; one header line per value. */
  readonly headers: Readonly<Record<string, string[]>>;
  readonly signal?: AbortSignal | undefined;
  /** Deadline of the response in milliseconds; the upgraded stream has none. Default: the client's. */
  readonly timeoutMs?: number | undefined;
}

/** The result of an upgrade request: the connection under its new protocol, or an ordinary response. */
export type UpgradeAnswer =
  | { readonly socket: Duplex; readonly headers: IncomingHttpHeaders }
  | { readonly socket?: never; readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string };

export interface StreamOptions {
  readonly query: URLSearchParams;
  /** Ends the stream, including an open one. */
  readonly signal?: AbortSignal | undefined;
  /** Deadline of the response's first byte in milliseconds; the rest has none. Default: none. */
  readonly timeoutMs?: number | undefined;
}

/** The result of a stream request: the body of a success, or the error response. The caller must read or destroy a body. */
export type StreamAnswer =
  | { readonly body: Readable; readonly headers: IncomingHttpHeaders }
  | { readonly body?: never; readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string };

/**
 * A client for one cluster's API server. Every method rejects with `KubeError` and nothing else. Objects are plain wire JSON,
 * unknown fields included.
 */
export interface ClusterClient {
  /** The cluster's name in errors, logs and metrics. */
  readonly cluster: string;
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: RequestOptions): Promise<Stored<T>>;
  /** Like `get`, but returns `undefined` for a missing object. */
  find<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options?: RequestOptions,
  ): Promise<Stored<T> | undefined>;
  /** The deadline limits each silence of the server: a page that is arriving may take longer. */
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<ListPage<T>>;
  /** Creates `object` in its own `metadata.namespace`. */
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  /** POSTs to a subresource of an object, such as a Binding or a TokenRequest. Returns the response body. */
  createSubresource(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    body: object,
    options?: RequestOptions,
  ): Promise<unknown>;
  /** Replaces the object (PUT). `object.metadata.resourceVersion`, when set, is a precondition. */
  replace<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<Stored<T>>;
  /** Resolves when the server accepted the deletion. Rejects with NotFound for a missing object. */
  delete(resource: Resource<KubeObject>, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /** Requests any path. Returns the parsed JSON, or the text of a response that is not JSON. */
  raw(request: RawRequest): Promise<unknown>;
  /** Watches. Ends normally when the server closes the stream; rejects with `Gone` when `resourceVersion` expired. */
  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /**
   * Upgrades a connection to a subresource to another protocol. The caller owns the returned socket; `close` cuts it. Bypasses
   * slots and rate limit, because a user's session lasts as long as the user wants.
   */
  upgrade(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    options: UpgradeOptions,
  ): Promise<UpgradeAnswer>;
  /** Reads a subresource, such as a log, as a stream with backpressure. Bypasses slots and rate limit. */
  stream(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    options: StreamOptions,
  ): Promise<StreamAnswer>;
  /** Closes all connections. Requests in flight reject. */
  close(): Promise<void>;
}

/** The upgrades that a client makes beside `ClusterClient`, at servers that speak HTTP as API servers do. */
export interface PathUpgrades {
  /** Upgrades a connection to any path, otherwise like `upgrade`. */
  upgradePath(path: string, options: UpgradeOptions): Promise<UpgradeAnswer>;
}

/** The user whom the API server takes a forwarded request for. It acts with that user's rights and no others. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** A client's request, to be sent on as it is. */
export interface ForwardedRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with query, as it came. */
  readonly path: string;
  /** Names and values in turn, as Node.js has them. Credentials, impersonation and hop-by-hop headers are not sent. */
  readonly headers: readonly string[];
  readonly impersonation: Impersonation;
  /** Sent as it is read, never gathered. Destroyed when the request fails. */
  readonly body?: Readable | undefined;
  /** Ends the request, and the stream of its response. */
  readonly signal: AbortSignal;
}

/** The API server's response. The reader must read or destroy the body. */
export interface ForwardedResponse {
  readonly status: number;
  /** Names and values in turn, without hop-by-hop headers. */
  readonly headers: readonly string[];
  /** Read with backpressure. Ends with an error when the API server's response was cut. */
  readonly body: Readable;
}

/**
 * Sends clients' requests to one API server, each for the user that it is from. Without retries, limits and deadlines but
 * those of the caller; with a deadline for the connection. Both methods reject with KubeError.
 */
export interface Forwarder {
  /** Resolves when the response begins. */
  forward(request: ForwardedRequest): Promise<ForwardedResponse>;
  /** Asks for another protocol. `protocol`: value of the Upgrade header. The caller owns the socket; `close` cuts it. */
  upgrade(request: Omit<ForwardedRequest, "body">, protocol: string): Promise<UpgradeAnswer>;
  close(): Promise<void>;
}

/** The objects that a table is to have: those of a list, or the one of a name. */
export interface TableOptions extends ListOptions {
  readonly name?: string | undefined;
  /** Part of each row's object to send: its metadata, or the whole of it. */
  readonly includeObject: "Metadata" | "Object";
}

/** The reads of lists and objects as the API server prints them, which a client makes beside `ClusterClient`. */
export interface TableReads {
  listTable(resource: Resource<KubeObject>, options: TableOptions): Promise<TablePage>;
  /** Watches like `ClusterClient.watch`. */
  watchTable(
    resource: Resource<KubeObject>,
    options: WatchOptions & Pick<TableOptions, "includeObject">,
  ): AsyncIterable<TableEvent>;
}

/** Receives each finished request, retries included. */
export interface ClientMetrics {
  /** Observes a request. `result` is the HTTP status, or the error code without a response. */
  observeRequest(cluster: string, verb: string, plural: string, result: string, seconds: number): void;
  /** Counts an accepted watch. */
  countWatch(cluster: string, plural: string): void;
  countWatchEvents(cluster: string, plural: string, events: number, bytes: number): void;
}
