import type { IncomingHttpHeaders } from "node:http";
import type { Duplex, Readable } from "node:stream";
import type { KubeObject, ObjectRef, Stored } from "../api/kubernetes.ts";
import type { Resource } from "./resources.ts";

export interface RequestOptions {
  readonly signal?: AbortSignal;
  /** Deadline of the whole request, waiting for a slot included, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number;
  /**
   * Waits neither for a slot nor for the request rate: for the few requests that tell whether a server answers or a node
   * lives, which must not look late because thousands of others are waiting.
   */
  readonly outOfTurn?: boolean;
}

/** How objects are answered with. */
interface AnswerOptions {
  /** Leave `metadata.managedFields` out of the answer before it is parsed: less memory and work for who does not read them. */
  readonly dropManagedFields?: boolean;
}

/** What is listed or watched. */
interface Selection extends AnswerOptions {
  /** All namespaces when absent. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ListOptions extends RequestOptions, Selection {
  /** Page size; without it the server answers with everything. */
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
}

export interface ListPage<T extends KubeObject> {
  readonly items: Stored<T>[];
  readonly resourceVersion: string;
  /** Bytes of heap that it takes, roughly. */
  readonly size: number;
  /** Token of the next page; absent on the last. */
  readonly continue?: string;
}

export interface WriteOptions extends RequestOptions, AnswerOptions {
  /** Answer with the object's metadata alone, for who reads no more of it: less to encode there and to parse here. */
  readonly metadataOnly?: boolean;
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
  /** e.g. `status`, `binding`, `token`. */
  readonly subresource?: string;
}

/** A patch in one of the four types of the API server. `apply` is server-side apply. */
export type Patch =
  | { readonly type: "json"; readonly body: readonly object[] }
  | { readonly type: "merge" | "strategic"; readonly body: object }
  | { readonly type: "apply"; readonly body: object; readonly force?: boolean };

export interface DeleteOptions extends RequestOptions {
  readonly gracePeriodSeconds?: number;
  /** Preconditions: the server answers Conflict when they do not hold. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagationPolicy?: "Foreground" | "Background" | "Orphan";
}

export interface RawRequest extends RequestOptions {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with query, e.g. `/readyz` or `/apis/authentication.k8s.io/v1/tokenreviews`. */
  readonly path: string;
  readonly body?: object;
  readonly contentType?: string;
}

/** One line of a watch, as the API server sent it. */
export type WatchEvent<T extends KubeObject> =
  | {
      readonly type: "ADDED" | "MODIFIED" | "DELETED";
      readonly object: Stored<T>;
      /** Bytes of heap that it takes, roughly. */
      readonly size: number;
    }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

export interface WatchOptions extends Selection {
  readonly resourceVersion: string;
  /** The server ends the watch after this long; seconds. */
  readonly timeoutSeconds?: number;
  /** Silence after which the connection is taken for dead. Default: a little more than `timeoutSeconds`. */
  readonly idleTimeoutMs?: number;
  /** Called when the server has accepted the watch. */
  readonly onOpen?: () => void;
  readonly signal: AbortSignal;
}

/** How a subresource is asked for another protocol than HTTP. */
export interface UpgradeOptions {
  readonly method: "GET" | "POST";
  readonly query: URLSearchParams;
  /** Value of the Upgrade header, e.g. `SPDY/3.1` or `websocket`. */
  readonly protocol: string;
  /** More headers, as the protocol wants them; one line for each value. */
  readonly headers: Readonly<Record<string, string[]>>;
  readonly signal?: AbortSignal;
  /** Deadline of the answer, in milliseconds; the stream after it has none. Default: the client's. */
  readonly timeoutMs?: number;
}

/** The answer to a request for an upgrade: the connection under its new protocol, or what was answered instead. */
export type UpgradeAnswer =
  | { readonly socket: Duplex; readonly headers: IncomingHttpHeaders }
  | { readonly socket?: never; readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string };

/** What of a subresource is read as a stream. */
export interface StreamOptions {
  readonly query: URLSearchParams;
  /** Ends the stream, also once it is open. */
  readonly signal?: AbortSignal;
  /** Deadline of the answer's first byte, in milliseconds; the rest has none. Default: none. */
  readonly timeoutMs?: number;
}

/** A success as a stream, or what was answered instead. Whoever gets a body must read or destroy it. */
export type StreamAnswer =
  | { readonly body: Readable; readonly headers: IncomingHttpHeaders }
  | { readonly body?: never; readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string };

/**
 * One cluster's API server. Every method rejects with `KubeError` and nothing else.
 * Requests carry plain wire JSON: what the server sent is what the caller gets, unknown fields included.
 */
export interface ClusterClient {
  /** Name used in errors, logs and metrics: `host`, or the member's name. */
  readonly cluster: string;
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: RequestOptions): Promise<Stored<T>>;
  /** Like `get`, but a missing object is `undefined`. */
  find<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options?: RequestOptions,
  ): Promise<Stored<T> | undefined>;
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<ListPage<T>>;
  /** Creates `object` in its own `metadata.namespace`. */
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  /** POST to a subresource of an existing object, e.g. a Binding or a TokenRequest; returns the answer's body. */
  createSubresource(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    body: object,
    options?: RequestOptions,
  ): Promise<unknown>;
  /** PUT. `object.metadata.resourceVersion`, when set, is a precondition. */
  replace<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<Stored<T>>;
  /** Resolves when the server accepted the deletion; a missing object rejects with NotFound. */
  delete(resource: Resource<KubeObject>, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /** Any path; returns the parsed JSON, or the text when the answer is not JSON. */
  raw(request: RawRequest): Promise<unknown>;
  /** Ends normally when the server closes the stream; rejects with `Gone` when `resourceVersion` has expired. */
  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /**
   * Asks a subresource of an object for another protocol. The caller owns the socket that it gets; `close` cuts it. Takes
   * no slot and no token: it is a person's request, and lasts as long as the person likes.
   */
  upgrade(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    options: UpgradeOptions,
  ): Promise<UpgradeAnswer>;
  /**
   * Reads a subresource of an object as a stream, e.g. a log, for as long as its reader likes. The server waits while
   * nobody reads. Takes no slot and no token of other requests.
   */
  stream(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    options: StreamOptions,
  ): Promise<StreamAnswer>;
  /** Closes all connections; requests under way reject. */
  close(): Promise<void>;
}
