import type { WatchEvent, WatchOptions } from "../client.ts";
import type { KubeError } from "../errors.ts";
import { cutManagedFields, heapBytesOf, isJsonObject, parseJson } from "../json.ts";
import type { KubeObject } from "../objects.ts";
import { isStored, isWellFormed, type Resource } from "../resources.ts";
import type { ApiRequest } from "./request-sender.ts";
import { collectionPath, type Query, withQuery } from "./resource-paths.ts";
import { errorFromAnswer, errorFromStatus } from "./status.ts";
import type { Transport } from "./transport.ts";
import { StreamCut, WatchStream } from "./watch-stream.ts";

export const METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

// Shorter than the server's default of 30 to 60 minutes, so that a dead socket is found in minutes.
const DEFAULT_TIMEOUT_SECONDS = 300;
// Tolerance for a live server that ends the watch late.
const IDLE_MARGIN_MS = 15_000;

// API servers write the fields of built-in types in the order of their declarations. Another order is only slower.
const NAMESPACE =
  /^\{"type":"(?:ADDED|MODIFIED|DELETED)","object":\{"kind":"\w+","apiVersion":"[\w./-]+","metadata":\{"name":"[^"\\]+",(?:"generateName":"[^"\\]+",)?"namespace":"([^"\\]+)"/;
// Two names of 253 bytes and a namespace of 63, with what is between.
const NAMESPACE_WITHIN = 1_024;

/** Yields the events of one watch; see `ClusterClient.watch`. */
export async function* watchEvents<T extends KubeObject>(
  transport: Transport,
  resource: Resource<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>> {
  const request = watchRequest(resource, options);
  for await (const lines of watchLines(transport, request, options)) {
    for (const line of lines) {
      if (isWanted(line, options)) yield decode(resource, line, options, transport, request);
    }
  }
}

/** Reports whether a line has to be parsed. */
function isWanted(line: Buffer, options: WatchOptions): boolean {
  if (options.isWanted === undefined) return true;
  const namespace = NAMESPACE.exec(line.toString("latin1", 0, NAMESPACE_WITHIN))?.[1];
  return namespace === undefined || options.isWanted(namespace);
}

export function watchRequest(
  resource: Resource<KubeObject>,
  options: WatchOptions,
  added: Query = {},
): ApiRequest & { readonly signal: AbortSignal } {
  const { namespace, labelSelector, fieldSelector, resourceVersion, signal } = options;
  const query = {
    watch: true,
    allowWatchBookmarks: true,
    resourceVersion,
    timeoutSeconds: options.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS,
    labelSelector,
    fieldSelector,
    ...added,
  };
  return {
    verb: "watch",
    method: "GET",
    plural: resource.plural,
    namespace,
    path: withQuery(collectionPath(resource, namespace), query),
    ...(options.metadataOnly === true ? { accept: METADATA_ONLY } : {}),
    signal,
  };
}

/** Yields the lines of one watch, one for each event. Rejects with KubeError. */
export async function* watchLines(
  transport: Transport,
  request: ApiRequest & { readonly signal: AbortSignal },
  options: WatchOptions,
): AsyncGenerator<Buffer[]> {
  const { signal } = request;
  const timeoutSeconds = options.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS;
  const idleMs = options.idleTimeoutMs ?? timeoutSeconds * 1000 + IDLE_MARGIN_MS;
  let stream: WatchStream | undefined;
  const onAbort = (): void => stream?.cancel("the caller gave up", signal.reason);
  signal.addEventListener("abort", onAbort);
  try {
    for (let attempt = 0; ; attempt += 1) {
      if (signal.aborted) throw transport.error("Aborted", "the caller gave up", request, signal.reason);
      await transport.takeToken(request, transport.timeoutMs);
      const identity = await transport.identity(request);
      stream = new WatchStream({ openMs: transport.timeoutMs, idleMs }, transport.arriving);
      if (signal.aborted) onAbort();
      else transport.sender.send("watches", request, identity, stream);
      const { status, headers, refusal } = await stream.opened;
      if (refusal === undefined) break;
      if (status !== 401 || attempt > 0) {
        throw errorFromAnswer({ status, headers, text: refusal }, request.path, transport.subject(request));
      }
      transport.refreshCredentials();
    }
    transport.watchOpened(request);
    options.onOpen?.();
    for (let lines = await stream.take(); lines !== undefined; lines = await stream.take()) {
      transport.watchBrought(request, lines);
      yield lines;
    }
  } catch (error) {
    throw error instanceof StreamCut ? cutError(error, transport, request) : error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    stream?.cancel("the consumer is done");
  }
}

function cutError(cut: StreamCut, transport: Transport, request: ApiRequest): KubeError {
  if (request.signal?.aborted === true) return transport.error("Aborted", cut.message, request, cut);
  return transport.error(cut.sent ? "AnswerLost" : "NotSent", cut.message, request, cut);
}

/** Returns the JSON object of a line, and its estimated heap bytes. Throws KubeError. */
export function parseLine(
  line: Buffer,
  { dropManagedFields }: WatchOptions,
  transport: Transport,
  request: ApiRequest,
): { readonly event: Readonly<Record<string, unknown>>; readonly size: number } {
  const text = line.toString("utf8");
  const kept = dropManagedFields === true ? cutManagedFields(text) : text;
  const size = heapBytesOf(kept);
  const { most } = transport.arriving;
  if (size > most) throw transport.error("BadAnswer", `a watch event takes more than ${most} bytes`, request);
  let event: unknown;
  try {
    event = parseJson(kept);
  } catch (cause) {
    throw transport.error("BadAnswer", "a watch event is not JSON", request, cause);
  }
  if (!isJsonObject(event)) throw transport.error("BadAnswer", "a watch event is not an object", request);
  if (event.type === "ERROR") throw errorFromStatus(event.object, transport.subject(request));
  return { event, size };
}

function decode<T extends KubeObject>(
  resource: Resource<T>,
  line: Buffer,
  options: WatchOptions,
  transport: Transport,
  request: ApiRequest,
): WatchEvent<T> {
  const { event, size } = parseLine(line, options, transport, request);
  const { type, object } = event;
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      if (
        isStored<T>(object) &&
        (!transport.untrusted || request.accept === METADATA_ONLY || isWellFormed(resource, object))
      )
        return { type, object, size };
      break;
    case "BOOKMARK":
      if (
        isJsonObject(object) &&
        isJsonObject(object.metadata) &&
        typeof object.metadata.resourceVersion === "string"
      ) {
        return { type, resourceVersion: object.metadata.resourceVersion };
      }
      break;
  }
  throw unexpectedEvent(type, transport, request);
}

/** Returns the error for an event that no API server sends. */
export function unexpectedEvent(type: unknown, transport: Transport, request: ApiRequest): KubeError {
  return transport.error("BadAnswer", `a watch event of type ${String(type)} is not what the API promises`, request);
}
