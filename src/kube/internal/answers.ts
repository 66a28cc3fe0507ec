import type { ListPage } from "../client.ts";
import { ResponseTooLarge } from "../errors.ts";
import { cutManagedFields, heapBytesOf, isJsonObject, parseJson } from "../json.ts";
import type { KubeObject, Stored } from "../objects.ts";
import { apiVersionOf, isStored, isWellFormed, type Resource } from "../resources.ts";
import type { ApiRequest } from "./request-sender.ts";
import type { Transport } from "./transport.ts";
import { METADATA_ONLY } from "./watch.ts";

export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/** The text of an answer, its request, and which parts of its objects are kept. */
interface Answer {
  readonly text: string;
  readonly request: ApiRequest;
  readonly dropManagedFields?: boolean | undefined;
}

/** Returns the JSON of an answer. Throws a KubeError for one that is none, or too large. */
export function jsonOf(transport: Transport, { text, request, dropManagedFields }: Answer): unknown {
  const kept = dropManagedFields === true ? cutManagedFields(text) : text;
  checkSize(transport, kept, request);
  try {
    return parseJson(kept);
  } catch (cause) {
    throw transport.error("BadAnswer", "the answer is not JSON", request, cause);
  }
}

export function jsonOrText(transport: Transport, text: string, request: ApiRequest): unknown {
  checkSize(transport, text, request);
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

/** Returns the object of an answer. Throws a KubeError for an answer that violates the protocol, or is too large. */
export function objectOf<T extends KubeObject>(transport: Transport, resource: Resource<T>, answer: Answer): Stored<T> {
  const { request } = answer;
  const body = jsonOf(transport, answer);
  // The response of a dry run has no resourceVersion, since nothing was stored.
  if (isJsonObject(body) && isJsonObject(body.metadata)) body.metadata.resourceVersion ??= "";
  if (!isStored<T>(body)) throw transport.error("BadAnswer", "the answer is not a stored object", request);
  if (request.accept !== METADATA_ONLY) checkFields(transport, resource, body, request);
  return body;
}

/** Returns one page of a list. Throws as `objectOf` does. */
export function pageOf<T extends KubeObject>(transport: Transport, resource: Resource<T>, answer: Answer): ListPage<T> {
  const { request } = answer;
  const text = answer.dropManagedFields === true ? cutManagedFields(answer.text) : answer.text;
  const body = jsonOf(transport, { text, request });
  const version = isJsonObject(body) && isJsonObject(body.metadata) ? body.metadata.resourceVersion : undefined;
  if (!isJsonObject(body) || !isJsonObject(body.metadata) || typeof version !== "string") {
    throw transport.error("BadAnswer", "the answer is not a list", request);
  }
  const next = body.metadata.continue;
  return {
    items: itemsOf<T>(transport, resource, body.items, request),
    resourceVersion: version,
    size: heapBytesOf(text),
    ...(typeof next === "string" && next !== "" ? { continue: next } : {}),
  };
}

function itemsOf<T extends KubeObject>(
  transport: Transport,
  resource: Resource<T>,
  items: unknown,
  request: ApiRequest,
): Stored<T>[] {
  // Go encodes an empty list as null.
  if (items === null || items === undefined) return [];
  if (!Array.isArray(items)) throw transport.error("BadAnswer", "the answer is not a list", request);
  const { kind } = resource;
  const apiVersion = apiVersionOf(resource);
  return items.map((item: unknown) => {
    if (!isStored<T>(item)) throw transport.error("BadAnswer", "a list item is not a stored object", request);
    if (request.accept !== METADATA_LIST) checkFields(transport, resource, item, request);
    // API servers omit kind and apiVersion in list items of built-in types, unlike in watch events.
    item.kind ??= kind;
    item.apiVersion ??= apiVersion;
    return item;
  });
}

function checkFields<T extends KubeObject>(
  transport: Transport,
  resource: Resource<T>,
  object: Stored<T>,
  request: ApiRequest,
): void {
  if (!transport.untrusted || isWellFormed(resource, object)) return;
  const { namespace = "", name } = object.metadata;
  throw transport.error("BadAnswer", `${namespace}/${name} has fields of wrong types`, request);
}

/** Rejects a response whose parsed form would exceed the budget. */
function checkSize(transport: Transport, text: string, request: ApiRequest): void {
  const { most } = transport.arriving;
  if (!transport.untrusted || heapBytesOf(text) <= most) return;
  const cause = new ResponseTooLarge(most);
  throw transport.error("AnswerLost", cause.message, request, cause);
}
