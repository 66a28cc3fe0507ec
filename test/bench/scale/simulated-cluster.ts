import { randomInt, randomUUID } from "node:crypto";
import { clusters, delegatedTypes } from "../../../src/api/resources.ts";
import { pods, serviceExports } from "../../../src/kube/resources.ts";
import { ApiServer } from "../../support/api-server/api-server.ts";
import type { ServedResource } from "../../support/api-server/refusal.ts";
import { routeOf } from "../../support/api-server/routes.ts";
import { type Fault, type FaultRequest, FaultServer } from "../../support/fault-server/fault-server.ts";

/** An object as JSON. */
export type Json = Record<string, unknown> & { metadata: Record<string, unknown> & { name: string } };

/** A request to a cluster: the collection's plural, and optionally an object and subresource. */
interface Target {
  readonly collection: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

// More than are written to a collection between any list and its watch.
const KEPT_CHANGES = 1000;
// An API server sends each watch a bookmark about every minute. Clusters that start together send theirs at different times.
const BOOKMARKS_MS = [45_000, 60_000] as const;

/**
 * A cluster that is not there: an API server in memory over HTTP, and pods that run as soon as they are created, and end as soon
 * as they are deleted. Many of them fit one process, and what is measured is the controller alone.
 */
export class SimulatedCluster {
  requests = 0;
  /** Collections whose requests are never answered. */
  readonly silent: Set<string> = new Set();
  /** Answers requests in place of the API server, or leaves them to it by returning false. */
  answer: Fault = () => false;
  /** Called with each write, after it was answered. */
  onWrite: ((method: string, target: Target, object: Json | undefined) => void) | undefined;
  /** Called with each change that is asked for of an object that is there, and what the request says. */
  onChange: ((method: string, target: Target, body: object | undefined) => void) | undefined;
  /** Called when a pod is created; its result is what the kubelet makes of it. */
  onPod: ((pod: Json) => Json) | undefined;
  readonly #api: ApiServer;
  readonly #server: FaultServer;
  readonly #bookmarks: NodeJS.Timeout;

  private constructor(api: ApiServer, server: FaultServer) {
    this.#api = api;
    this.#server = server;
    this.#bookmarks = setInterval(() => server.bookmark(), randomInt(...BOOKMARKS_MS)).unref();
    api.notesManagers = false;
    api.resources.define(clusters, delegatedTypes, { ...serviceExports, version: serviceExports.versions[0] });
    api.onWrite = ({ resource, object, before }) => {
      if (resource.plural !== pods.plural || this.onPod === undefined) return;
      const { metadata } = object;
      if (before === undefined) api.put(pods, this.onPod({ ...object, metadata: { ...metadata } }));
      else if (metadata.deletionTimestamp !== undefined) api.delete(pods, metadata, { gracePeriodSeconds: 0 });
    };
    server.always = (request, response) => this.answer(request, response) === true || this.#arrived(request);
    server.onAnswer = (request, answer) => {
      const target = this.#targetOf(request);
      if (request.kind !== "write" || target === undefined || request.query.has("dryRun")) return;
      const answered = isJson(answer) ? answer : undefined;
      const { collection, namespace = "", name = answered?.metadata.name ?? "" } = target;
      // The answer may have the metadata alone, and a deleted object is in the answer alone.
      this.onWrite?.(request.method, target, this.get(collection, namespace, name) ?? answered);
    };
  }

  static async start(): Promise<SimulatedCluster> {
    const api = new ApiServer(randomUUID(), Date.now, KEPT_CHANGES);
    return new SimulatedCluster(api, await FaultServer.start({ api, forgets: true }));
  }

  get url(): string {
    return this.#server.url;
  }

  get watchBytes(): number {
    return this.#server.watchedBytes;
  }

  get openWatches(): number {
    return this.#server.openWatches;
  }

  close(): Promise<void> {
    clearInterval(this.#bookmarks);
    return this.#server.stop();
  }

  /** Stores an object as it is, and tells watches; the collection is a plural. */
  put(collection: string, { metadata, ...object }: Json): Json {
    const resource = this.#resource(collection);
    const known = this.#api.find(resource, refOf(metadata))?.metadata;
    const creationTimestamp = new Date().toISOString().replace(/\.\d+Z/, "Z");
    const stored = this.#api.put(resource, {
      ...object,
      metadata: { uid: randomUUID(), creationTimestamp, ...known, ...metadata },
    });
    return asJson(stored);
  }

  /** An object as it is stored. */
  get(collection: string, namespace: string, name: string): Json | undefined {
    const found = this.#api.find(this.#resource(collection), refOf({ namespace, name }));
    return found && asJson(found);
  }

  /** Asks for the deletion of an object, as an author does. */
  erase(collection: string, namespace: string, name: string): void {
    const resource = this.#resource(collection);
    const ref = refOf({ namespace, name });
    if (this.#api.find(resource, ref) !== undefined) this.#api.delete(resource, ref, { gracePeriodSeconds: 0 });
  }

  count(collection: string): number {
    return this.#api.count(this.#resource(collection));
  }

  #arrived(request: FaultRequest): boolean {
    this.requests += 1;
    const target = this.#targetOf(request);
    if (target === undefined) return false;
    if (this.silent.has(target.collection)) return true;
    const { method, kind, body } = request;
    const { collection, namespace = "", name = "" } = target;
    if (kind === "write" && this.get(collection, namespace, name) !== undefined) {
      this.onChange?.(method, target, body === "" ? undefined : JSON.parse(body));
    }
    return false;
  }

  /** Returns undefined for a path that is no resource's. */
  #targetOf({ path }: FaultRequest): Target | undefined {
    try {
      const { resource, ...target } = routeOf(this.#api, path);
      return { collection: resource.plural, ...target };
    } catch {
      return undefined;
    }
  }

  #resource(plural: string): ServedResource {
    const resource = this.#api.resources.ofPlural(plural);
    if (resource === undefined) throw new Error(`no resource ${plural}`);
    return resource;
  }
}

function refOf({ namespace = "", name }: { readonly namespace?: unknown; readonly name: string }): {
  readonly namespace?: string;
  readonly name: string;
} {
  return namespace === "" ? { name } : { namespace: String(namespace), name };
}

function isJson(object: object | string): object is Json {
  return typeof object === "object" && "metadata" in object;
}

function asJson(object: object): Json {
  if (!isJson(object)) throw new Error("an object without metadata");
  return object;
}
