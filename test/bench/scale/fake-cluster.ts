import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isRecord } from "../../../src/kube/json.ts";

/** An object as JSON; the fake knows no kinds. */
export type Json = Record<string, unknown> & { metadata: Record<string, unknown> & { name: string } };

interface Watch {
  readonly response: ServerResponse;
  readonly path: string;
  readonly selector: (object: Json) => boolean;
}

/** An event that watches are told of. */
interface Change {
  readonly version: number;
  readonly collection: string;
  readonly type: string;
  readonly object: Json;
  /** The object before. */
  readonly known: Json | undefined;
}

// More than are written between any list and its watch.
const KEPT_CHANGES = 1000;

const EXPORTS = {
  name: "multicluster.x-k8s.io",
  versions: [{ version: "v1beta1" }],
  preferredVersion: { version: "v1beta1" },
};

/** A request to a fake cluster: the collection's path, and optionally an object and subresource. */
interface Target {
  readonly collection: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

const PATH = /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/([^/]+)(?=\/[^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/;

/**
 * A cluster that is not there: lists in pages, watches, writes and preconditions as far as the controller needs them, and
 * pods that run as soon as they have a node. Many of them fit one process, and what is measured is the controller alone.
 */
export class FakeCluster {
  /** Bytes that watches and answers have sent. */
  sentBytes = 0;
  watchBytes = 0;
  requests = 0;
  /** Collections whose lists are never answered. */
  readonly silent: Set<string> = new Set();
  /** Called with each write, after it was done. */
  onWrite: ((method: string, target: Target, object: Json | undefined) => void) | undefined;
  /** Called with each change that is asked for of an object that is there, and what the request says. */
  onChange: ((method: string, target: Target, body: object | undefined) => void) | undefined;
  /** Called when a pod is created; its result is stored. */
  onPod: ((pod: Json) => Json) | undefined;
  readonly #objects = new Map<string, Map<string, Json>>();
  readonly #watches = new Set<Watch>();
  /** The last ones, in their order. */
  readonly #changes: Change[] = [];
  readonly #server: Server;
  #version = 1000;
  #port = 0;

  constructor() {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    this.#server.keepAliveTimeout = 120_000;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  /** Stores an object as it is, and tells watches; the collection is a plural. */
  put(collection: string, object: Json): Json {
    const objects = this.#in(collection);
    const key = keyOf(object);
    const known = objects.get(key);
    this.#version += 1;
    const metadata = {
      uid: randomUUID(),
      creationTimestamp: new Date().toISOString().replace(/\.\d+Z/, "Z"),
      ...known?.metadata,
      ...object.metadata,
      resourceVersion: String(this.#version),
    };
    const stored = { ...object, metadata };
    objects.set(key, stored);
    this.#tell(collection, known === undefined ? "ADDED" : "MODIFIED", stored, known);
    return stored;
  }

  /** An object as it is stored. */
  get(collection: string, namespace: string, name: string): Json | undefined {
    return this.#in(collection).get(`${namespace}/${name}`);
  }

  /** Asks for the deletion of an object, as an author does. */
  erase(collection: string, namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    const known = this.#in(collection).get(key);
    if (known !== undefined) this.#delete(collection, key, known);
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  count(collection: string): number {
    return this.#in(collection).size;
  }

  #in(collection: string): Map<string, Json> {
    let objects = this.#objects.get(collection);
    if (objects === undefined) {
      objects = new Map();
      this.#objects.set(collection, objects);
    }
    return objects;
  }

  #tell(collection: string, type: string, object: Json, known?: Json): void {
    const change = { version: this.#version, collection, type, object, known };
    this.#changes.push(change);
    if (this.#changes.length > KEPT_CHANGES) this.#changes.shift();
    const text = lineOf(type, object);
    for (const watch of this.#watches) {
      if (watch.path === collection) this.#send(watch, change, text);
    }
  }

  #send({ response, selector }: Watch, { object, known }: Change, text: string): void {
    if (selector(object)) {
      this.watchBytes += text.length;
      response.write(text);
    } else if (known !== undefined && selector(known)) {
      // A watch treats an object that it no longer selects as deleted.
      response.write(lineOf("DELETED", object));
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const url = new URL(request.url ?? "/", this.url);
    const method = request.method ?? "GET";
    if (url.pathname === "/readyz") return this.#answer(response, 200, "ok");
    if (url.pathname === "/version")
      return this.#answer(response, 200, { major: "1", minor: "36", gitVersion: "v1.36.0" });
    // The only API that is looked up: everything else is taken for served.
    if (url.pathname === "/apis") return this.#answer(response, 200, { groups: [EXPORTS] });
    if (url.pathname === `/apis/${EXPORTS.name}/v1beta1`)
      return this.#answer(response, 200, { resources: [{ name: "serviceexports" }] });
    const [, namespace, collection = "", name, subresource] = PATH.exec(url.pathname) ?? [];
    const target = { collection, namespace, name, subresource };
    if (this.silent.has(collection)) return;
    if (url.searchParams.get("watch") === "true") return this.#watch(target, url.searchParams, response);
    if (method === "GET" && name === undefined) return this.#list(target, url.searchParams, response);
    const text = Buffer.concat(chunks).toString("utf8");
    const body: Json | undefined = text === "" ? undefined : JSON.parse(text);
    const key = `${namespace ?? ""}/${name ?? body?.metadata.name ?? ""}`;
    const known = this.#in(collection).get(key);
    if (method === "POST" && subresource === undefined) {
      if (known !== undefined) return this.#status(response, 409, "AlreadyExists");
      return this.#written(response, "POST", target, this.#create(collection, body));
    }
    if (known === undefined) return this.#status(response, 404, "NotFound");
    if (method === "GET") return this.#answer(response, 200, known);
    this.onChange?.(method, target, body);
    const { uid } = method === "DELETE" ? preconditions(body) : (body?.metadata ?? {});
    if (uid !== undefined && uid !== known.metadata.uid) return this.#status(response, 409, "Conflict");
    if (method === "DELETE") return this.#written(response, method, target, this.#delete(collection, key, known));
    const next = subresource === "binding" ? bound(known, body) : merged(known, body ?? {});
    return this.#written(response, method, target, this.#update(collection, key, next));
  }

  #create(collection: string, object: Json | undefined): Json {
    const made = object ?? { metadata: { name: "" } };
    return this.put(collection, collection === "pods" && this.onPod !== undefined ? this.onPod(made) : made);
  }

  #update(collection: string, key: string, next: Json): Json {
    const finalizers = next.metadata.finalizers;
    const held = Array.isArray(finalizers) && finalizers.length > 0;
    if (next.metadata.deletionTimestamp !== undefined && !held) return this.#remove(collection, key, next);
    return this.put(collection, next);
  }

  #delete(collection: string, key: string, known: Json): Json {
    const finalizers = known.metadata.finalizers;
    const isHeld = Array.isArray(finalizers) && finalizers.length > 0;
    if (!isHeld && collection !== "pods") return this.#remove(collection, key, known);
    // A pod's last event shows that its end was requested, as an API server's does.
    const metadata = { ...known.metadata, deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 0 };
    const deleted = { ...known, metadata };
    return isHeld ? this.put(collection, deleted) : this.#remove(collection, key, deleted);
  }

  #remove(collection: string, key: string, object: Json): Json {
    this.#version += 1;
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    this.#in(collection).delete(key);
    this.#tell(collection, "DELETED", last);
    return last;
  }

  #list({ collection, namespace }: Target, query: URLSearchParams, response: ServerResponse): void {
    const limit = Number(query.get("limit") ?? Number.POSITIVE_INFINITY);
    const begin = Number(query.get("continue") ?? 0);
    const selects = selectorOf(query.get("labelSelector"), namespace);
    const [, named] = /^metadata\.name=(.+)$/.exec(query.get("fieldSelector") ?? "") ?? [];
    const items: Json[] = [];
    let at = 0;
    let next: number | undefined;
    for (const object of this.#in(collection).values()) {
      if (!selects(object) || (named !== undefined && object.metadata.name !== named)) continue;
      at += 1;
      if (at <= begin) continue;
      if (items.length >= limit) {
        next = begin + limit;
        break;
      }
      items.push(object);
    }
    const more = next === undefined ? {} : { continue: String(next) };
    this.#answer(response, 200, { metadata: { resourceVersion: String(this.#version), ...more }, items });
  }

  #watch({ collection, namespace }: Target, query: URLSearchParams, response: ServerResponse): void {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    const watch = { response, path: collection, selector: selectorOf(query.get("labelSelector"), namespace) };
    // Events between the list and the watch.
    const since = Number(query.get("resourceVersion") ?? this.#version);
    for (const change of this.#changes) {
      if (change.version <= since || change.collection !== collection) continue;
      this.#send(watch, change, lineOf(change.type, change.object));
    }
    this.#watches.add(watch);
    const timer = setTimeout(() => response.end(), Number(query.get("timeoutSeconds") ?? 300) * 1000);
    response.on("close", () => {
      clearTimeout(timer);
      this.#watches.delete(watch);
    });
  }

  #written(response: ServerResponse, method: string, target: Target, object: Json): void {
    this.#answer(response, method === "POST" ? 201 : 200, object);
    this.onWrite?.(method, target, object);
  }

  #status(response: ServerResponse, code: number, reason: string): void {
    this.#answer(response, code, {
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      reason,
      code,
      message: reason,
    });
  }

  #answer(response: ServerResponse, status: number, body: object | string): void {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    this.sentBytes += text.length;
    response.writeHead(status, { "content-type": "application/json" }).end(text);
  }
}

function lineOf(type: string, object: Json): string {
  return `${JSON.stringify({ type, object })}\n`;
}

function keyOf({ metadata }: Json): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

function preconditions(body: object | undefined): Record<string, unknown> {
  const found = isRecord(body) ? body.preconditions : undefined;
  return isRecord(found) ? found : {};
}

/** The equality-based part of label selectors. */
function selectorOf(text: string | null, namespace: string | undefined): (object: Json) => boolean {
  const terms = (text ?? "").split(",").filter((term) => term !== "");
  return ({ metadata }) => {
    if (namespace !== undefined && metadata.namespace !== namespace) return false;
    const labels = isRecord(metadata.labels) ? metadata.labels : {};
    return terms.every((term) => {
      if (term.startsWith("!")) return labels[term.slice(1)] === undefined;
      const [, key = "", operator, value] = /^([^!=]+)(!=|=)?(.*)$/.exec(term) ?? [];
      if (operator === undefined) return labels[key] !== undefined;
      return (labels[key] === value) === (operator === "=");
    });
  };
}

/** A merge patch, with those strategic directives that the controller uses. */
function merged(known: Json, patch: object): Json {
  const { metadata, ...rest } = patch as Json;
  const { "$deleteFromPrimitiveList/finalizers": gone, resourceVersion: _version, ...meta } = metadata ?? {};
  const next = merge(known, { ...rest, metadata: meta }) as Json;
  if (!Array.isArray(gone) || !Array.isArray(next.metadata.finalizers)) return next;
  const finalizers = next.metadata.finalizers.filter((name) => !gone.includes(name));
  return { ...next, metadata: { ...next.metadata, finalizers } };
}

function merge(known: unknown, patch: unknown): unknown {
  if (Array.isArray(patch)) return mergedList(Array.isArray(known) ? known : [], patch);
  if (!isRecord(patch) || !isRecord(known)) return patch;
  const next: Record<string, unknown> = { ...known };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete next[key];
    else if (!key.startsWith("$")) next[key] = merge(next[key] ?? (isRecord(value) ? {} : undefined), value);
  }
  return next;
}

/** Conditions are merged by type; any other list, an empty one, or one that says so, is replaced. */
function mergedList(known: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const items = patch.filter((item) => !isRecord(item) || item.$patch !== "replace");
  const isWhole = items.length !== patch.length || items.length === 0;
  const byType = !isWhole && items.every((item) => isRecord(item) && item.type !== undefined);
  if (!byType) return items;
  const conditions = new Map(known.map((item) => [isRecord(item) ? item.type : item, item]));
  for (const item of items) {
    if (!isRecord(item)) continue;
    if (item.$patch === "delete") conditions.delete(item.type);
    else conditions.set(item.type, merge(conditions.get(item.type) ?? {}, item));
  }
  return [...conditions.values()];
}

function bound(known: Json, binding: Json | undefined): Json {
  const target = isRecord(binding?.target) ? binding.target.name : undefined;
  const spec = isRecord(known.spec) ? known.spec : {};
  const annotations = { ...(isRecord(known.metadata.annotations) ? known.metadata.annotations : {}) };
  Object.assign(annotations, binding?.metadata.annotations);
  return { ...known, metadata: { ...known.metadata, annotations }, spec: { ...spec, nodeName: target } };
}
