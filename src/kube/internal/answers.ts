import type { ListOptions, ListPage } from "../client.ts";
import { ResponseTooLarge } from "../errors.ts";
import { cutManagedFields, heapBytesOf, isRecord, parseJson } from "../json.ts";
import type { KubeObject, Stored } from "../objects.ts";
import { apiVersionOf, isStored, isWellFormed, type Resource } from "../resources.ts";
import type { ApiRequest } from "./request-sender.ts";
import type { Transport } from "./transport.ts";
import { METADATA_ONLY } from "./watch.ts";

/** The media type of lists of metadata. */
export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/** An answer's request, and which parts of its objects are kept. */
interface Asked {
  readonly request: ApiRequest;
  readonly options: Pick<ListOptions, "dropManagedFields">;
}

/** Reads the answers of one API server. Throws a KubeError for those that violate the protocol, or are too large. */
export class Answers {
  readonly #transport: Pick<Transport, "untrusted" | "arriving" | "error">;

  constructor(transport: Pick<Transport, "untrusted" | "arriving" | "error">) {
    this.#transport = transport;
  }

  object<T extends KubeObject>(resource: Resource<T>, text: string, asked: Asked): Stored<T> {
    const { request } = asked;
    const body = this.json(keptOf(text, asked), request);
    // The response of a dry run has no resourceVersion, since nothing was stored.
    if (isRecord(body) && isRecord(body.metadata)) body.metadata.resourceVersion ??= "";
    if (!isStored<T>(body)) throw this.#transport.error("BadAnswer", "the answer is not a stored object", request);
    if (request.accept !== METADATA_ONLY) this.#check(resource, body, request);
    return body;
  }

  /** Returns one page of a list. */
  page<T extends KubeObject>(resource: Resource<T>, text: string, asked: Asked): ListPage<T> {
    const { request } = asked;
    const kept = keptOf(text, asked);
    const body = this.json(kept, request);
    const version = isRecord(body) && isRecord(body.metadata) ? body.metadata.resourceVersion : undefined;
    if (!isRecord(body) || !isRecord(body.metadata) || typeof version !== "string") {
      throw this.#transport.error("BadAnswer", "the answer is not a list", request);
    }
    const next = body.metadata.continue;
    return {
      items: this.#items<T>(resource, body.items, request),
      resourceVersion: version,
      size: heapBytesOf(kept),
      ...(typeof next === "string" && next !== "" ? { continue: next } : {}),
    };
  }

  json(text: string, request: ApiRequest): unknown {
    this.#checkSize(text, request);
    try {
      return parseJson(text);
    } catch (cause) {
      throw this.#transport.error("BadAnswer", "the answer is not JSON", request, cause);
    }
  }

  jsonOrText(text: string, request: ApiRequest): unknown {
    this.#checkSize(text, request);
    try {
      return parseJson(text);
    } catch {
      return text;
    }
  }

  #items<T extends KubeObject>(resource: Resource<T>, items: unknown, request: ApiRequest): Stored<T>[] {
    // Go encodes an empty list as null.
    if (items === null || items === undefined) return [];
    if (!Array.isArray(items)) throw this.#transport.error("BadAnswer", "the answer is not a list", request);
    const { kind } = resource;
    const apiVersion = apiVersionOf(resource);
    return items.map((item: unknown) => {
      if (!isStored<T>(item)) throw this.#transport.error("BadAnswer", "a list item is not a stored object", request);
      if (request.accept !== METADATA_LIST) this.#check(resource, item, request);
      // API servers omit kind and apiVersion in list items of built-in types, unlike in watch events.
      item.kind ??= kind;
      item.apiVersion ??= apiVersion;
      return item;
    });
  }

  #check<T extends KubeObject>(resource: Resource<T>, object: Stored<T>, request: ApiRequest): void {
    if (!this.#transport.untrusted || isWellFormed(resource, object)) return;
    const { namespace = "", name } = object.metadata;
    throw this.#transport.error("BadAnswer", `${namespace}/${name} has fields of wrong types`, request);
  }

  /** Rejects a response whose parsed form would exceed the budget. */
  #checkSize(text: string, request: ApiRequest): void {
    if (!this.#transport.untrusted) return;
    const { most } = this.#transport.arriving;
    if (heapBytesOf(text) <= most) return;
    const cause = new ResponseTooLarge(most);
    throw this.#transport.error("AnswerLost", cause.message, request, cause);
  }
}

function keptOf(text: string, { options: { dropManagedFields } }: Asked): string {
  return dropManagedFields === true ? cutManagedFields(text) : text;
}
