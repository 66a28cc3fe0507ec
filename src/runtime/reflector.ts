import { type KubeObject, type ObjectKey, objectKey, type Stored } from "../api/kubernetes.ts";
import type { ClusterClient, ListOptions, WatchEvent } from "../kube/client.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";
import { heapBytesOf } from "../kube/json.ts";
import type { ByteBudget } from "../kube/limits.ts";
import { LIST_TIMEOUT_MS } from "../kube/list-pages.ts";
import type { Resource } from "../kube/resources.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ConnectionBackoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { FailureNews } from "./failure-news.ts";
import { goneBackTo } from "./gone-back.ts";
import { Holdings } from "./holdings.ts";
import { Pause } from "./pause.ts";
import { Pieces } from "./pieces.ts";
import { sameVersion } from "./resource-version.ts";
import { Resumption, WATCH_IDLE_MS } from "./resumption.ts";
import { Staging } from "./staging.ts";
import { type IndexFunction, type ReadStore, Store } from "./store.ts";
import { unlessAborted } from "./unless-aborted.ts";

/** What changed in the store. A `deleted` object is its last known state: the final one when a watch told of it. */
export type ReflectorEvent<T extends KubeObject> =
  | { readonly type: "added"; readonly object: Stored<T> }
  | { readonly type: "updated"; readonly object: Stored<T>; readonly previous: Stored<T> }
  | { readonly type: "deleted"; readonly object: Stored<T> };

/**
 * - `idle`: not started
 * - `listing`: reading the whole state; the store still shows the one before
 * - `watching`: the server has accepted a watch and the store follows it; a watch that the server ends in good order and
 *   that is opened again at once does not leave this state
 * - `backing-off`: the last attempt failed, or ended too soon; the store shows the state before
 * - `stopped`: for good
 */
export type ReflectorState = "idle" | "listing" | "watching" | "backing-off" | "stopped";

/** What to reflect, and who is told. */
export interface ReflectorOptions<T extends KubeObject> {
  readonly client: ClusterClient;
  readonly resource: Resource<T>;
  /** All namespaces when absent. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Makes objects smaller before they are stored; may change its argument. */
  readonly transform?: (object: Stored<T>) => Stored<T>;
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
  /** What may be stored, maybe together with other stores. More than that is not read. */
  readonly budget?: ByteBudget;
  /** Bytes that an object holds of it, where less is kept than came. */
  readonly sizeOf?: (object: Stored<T>) => number;
  /** How many objects to ask for at once; default 500. */
  readonly pageSize?: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called after the store has changed. What it throws is logged. */
  readonly onEvent?: (event: ReflectorEvent<T>) => void;
  readonly onState?: (state: ReflectorState) => void;
}

const PAGE_SIZE = 500;
const BACKOFF = { initialMs: 200, maxMs: 10_000, healthyMs: 10_000 };
// Spread, so that the watches of a process do not all end at once.
const WATCH_SECONDS = { least: 240, spread: 120 };

/** Bytes of an object that was made smaller as it came, for `sizeOf`. */
export function sizeAsKept(object: object): number {
  return heapBytesOf(JSON.stringify(object));
}

/** Since when a reflector has failed without a watch in between, epoch ms, and why it did the last time. */
export interface Failing {
  readonly since: number;
  readonly reason: string;
}

/**
 * Keeps a store equal to one resource of one cluster, whatever happens to the connection.
 *
 * Lists are consistent reads (no resourceVersion): with `resourceVersion=0` a lagging API server may answer with the
 * past, and the absence of an object in a list is taken as proof here. A list is staged, then compared with the store,
 * so that deletions and replacements (same name, new uid) that no watch told of are seen too.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #store: Store<T>;
  readonly #transform: (object: Stored<T>) => Stored<T>;
  readonly #backoff: ConnectionBackoff;
  readonly #abort = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  readonly #pause: Pause;
  readonly #resumption: Resumption;
  readonly #holdings: Holdings;
  #running: Promise<void> | undefined;
  #state: ReflectorState = "idle";
  #lastListedAt: number | undefined;
  #failing: Failing | undefined;
  readonly #news: FailureNews;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#resumption = new Resumption(options.pageSize ?? PAGE_SIZE, options.clock);
    this.#holdings = new Holdings(options.budget);
    this.#store = new Store(options.indexes);
    this.#transform = options.transform ?? ((object) => object);
    this.#backoff = new ConnectionBackoff({ ...BACKOFF, clock: options.clock });
    this.#pause = new Pause(options.clock);
    this.#news = new FailureNews(options.clock);
  }

  get store(): ReadStore<T> {
    return this.#store;
  }

  get state(): ReflectorState {
    return this.#state;
  }

  /** Undefined when it works. */
  get failing(): Failing | undefined {
    return this.#failing;
  }

  /** When the server last sent anything: a page, an event, a bookmark. */
  get lastContactMs(): number | undefined {
    return this.#resumption.lastContactMs;
  }

  /** The last complete list was *begun* at this time: it shows everything that was done before. */
  get lastListedAt(): number | undefined {
    return this.#lastListedAt;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when no event will come any more. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error("the reflector was stopped"));
    await this.#running;
    this.#holdings.release();
    this.#setState("stopped");
  }

  /** Resolves once the store has held the whole state and its events are delivered; rejects with the signal's reason. */
  async whenSynced(signal?: AbortSignal): Promise<void> {
    if (signal === undefined) return this.#synced.promise;
    await unlessAborted(this.#synced.promise, signal);
  }

  /** Ends a wait between attempts: the server is known to answer again. */
  retry(): void {
    this.#pause.end();
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      let delayMs: number;
      try {
        await this.#watch(await this.#begin(signal), signal);
        delayMs = this.#backoff.ended();
        if (delayMs > 0) this.#setState("backing-off");
      } catch (error) {
        if (signal.aborted) return;
        delayMs = this.#failed(error);
      }
      if (delayMs > 0) await this.#pause.wait(delayMs, signal);
    }
  }

  /** The version from which a watch can tell of everything that the store does not show. */
  async #begin(signal: AbortSignal): Promise<string> {
    const before = this.#resumption.version;
    if (before !== undefined && this.#resumption.doubted) await this.#confirm(before, signal);
    this.#resumption.begun();
    const { version } = this.#resumption;
    if (version !== undefined) return version;
    this.#setState("listing");
    return this.#list(signal);
  }

  /** The store must not keep what a server has forgotten that was restored from a backup. After a while it may be as far again. */
  async #confirm(version: string, signal: AbortSignal): Promise<void> {
    const { client, resource, log } = this.#options;
    const goneBack = await goneBackTo(client, resource, version, { ...this.#selection(), signal });
    if (goneBack !== undefined) {
      log.warn({ resource: resource.plural, version, now: goneBack }, "the server has gone back in time");
    }
    this.#resumption.compared(goneBack !== undefined);
  }

  #selection(): Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector"> {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
  }

  async #list(signal: AbortSignal): Promise<string> {
    const begunAt = this.#options.clock.now();
    const staging = new Staging<T>(this.#options.budget);
    let resourceVersion: string;
    try {
      resourceVersion = await this.#readPages(staging, signal);
      this.#holdings.settle(staging);
    } finally {
      staging.release();
    }
    await this.#replaceAll(staging.objects, signal);
    this.#lastListedAt = begunAt;
    this.#resumption.listed(resourceVersion);
    return resourceVersion;
  }

  async #readPages(staging: Staging<T>, signal: AbortSignal): Promise<string> {
    const { client, resource } = this.#options;
    const { pageSize } = this.#resumption;
    let token: string | undefined;
    for (;;) {
      const page = await client.list(resource, {
        signal,
        timeoutMs: LIST_TIMEOUT_MS,
        // Nobody here reads them.
        dropManagedFields: true,
        ...this.#selection(),
        ...(pageSize === undefined ? {} : { limit: pageSize }),
        ...(token === undefined ? {} : { continue: token }),
      });
      this.#resumption.heard();
      // Which of them is how large does not matter to what all hold together.
      const even = Math.ceil(page.size / page.items.length);
      for (const item of page.items) this.#stage(staging, item, even);
      token = page.continue;
      if (token === undefined) return page.resourceVersion;
    }
  }

  #stage(staging: Staging<T>, item: Stored<T>, size: number): void {
    const key = objectKey(item.metadata);
    const known = this.#store.get(key);
    const held = this.#holdings.of(key);
    // The same state again: keeping the object that is there halves what a relist costs in memory.
    if (known !== undefined && sameUid(known, item) && sameVersion(known, item)) {
      staging.keep(key, known, held);
      return;
    }
    const object = this.#transform(item);
    if (!staging.add(key, object, this.#options.sizeOf?.(object) ?? size, held)) throw this.#tooMuch();
  }

  #tooMuch(): KubeError {
    const { client, resource, budget } = this.#options;
    const fields = { code: "BadAnswer", cluster: client.cluster, verb: "list", resource: resource.plural } as const;
    return new KubeError(`it has more than the ${budget?.most} bytes that may be stored of it`, fields);
  }

  /**
   * The store becomes `staged`; then everyone hears of the differences, and it counts as synced. What is much is done in
   * pieces, so that it does not hold up the process; what comes in between finds the store on its way, as it does in a watch.
   */
  async #replaceAll(staged: Map<ObjectKey, Stored<T>>, signal: AbortSignal): Promise<void> {
    const events: ReflectorEvent<T>[] = [];
    const pieces = new Pieces(signal);
    for (const previous of this.#store.list()) {
      const key = objectKey(previous.metadata);
      const object = staged.get(key);
      if (object !== undefined && sameUid(object, previous)) continue;
      this.#store.delete(key);
      events.push({ type: "deleted", object: previous });
      if (pieces.due) await pieces.next();
    }
    for (const [key, object] of staged) {
      const previous = this.#store.get(key);
      if (previous === object) continue;
      this.#store.set(object);
      events.push(previous === undefined ? { type: "added", object } : { type: "updated", object, previous });
      if (pieces.due) await pieces.next();
    }
    for (const event of events) {
      this.#emit(event);
      if (pieces.due) await pieces.next();
    }
    this.#store.synced = true;
    this.#synced.resolve();
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { client, resource } = this.#options;
    const events = client.watch(resource, {
      resourceVersion,
      signal,
      timeoutSeconds: WATCH_SECONDS.least + Math.floor(Math.random() * WATCH_SECONDS.spread),
      dropManagedFields: true,
      idleTimeoutMs: WATCH_IDLE_MS,
      onOpen: () => this.#opened(),
      ...this.#selection(),
    });
    for await (const event of events) {
      if (signal.aborted) return;
      this.#resumption.heard();
      this.#apply(event);
    }
  }

  #opened(): void {
    const { client, resource, log } = this.#options;
    if (this.#news.works()) log.info(`${resource.plural} of ${client.cluster} are followed again`);
    this.#failing = undefined;
    this.#resumption.opened();
    this.#backoff.working();
    this.#setState("watching");
  }

  #apply(event: WatchEvent<T>): void {
    if (event.type === "BOOKMARK") {
      this.#resumption.bookmark(event.resourceVersion);
      return;
    }
    const object = this.#transform(event.object);
    const { metadata } = object;
    this.#resumption.reached(metadata.resourceVersion);
    const key = objectKey(metadata);
    const previous = this.#store.get(key);
    if (event.type === "DELETED") {
      if (previous === undefined) return;
      this.#holdings.charge(key, 0);
      this.#store.delete(key);
      this.#emit({ type: "deleted", object: sameUid(previous, object) ? object : previous });
      return;
    }
    if (!this.#holdings.charge(key, this.#options.sizeOf?.(object) ?? event.size)) throw this.#tooMuch();
    if (previous === undefined) {
      this.#store.set(object);
      this.#emit({ type: "added", object });
    } else if (!sameUid(previous, object)) {
      this.#store.delete(key);
      this.#emit({ type: "deleted", object: previous });
      this.#store.set(object);
      this.#emit({ type: "added", object });
    } else if (!sameVersion(previous, object)) {
      this.#store.set(object);
      this.#emit({ type: "updated", object, previous });
    }
  }

  #emit(event: ReflectorEvent<T>): void {
    try {
      this.#options.onEvent?.(event);
    } catch (err) {
      const { name, namespace } = event.object.metadata;
      this.#options.log.error(
        { err, resource: this.#options.resource.plural, namespace, name },
        "event handler failed",
      );
    }
  }

  /** Notes a failed attempt; returns the delay before the next. */
  #failed(error: unknown): number {
    const { log, resource, clock } = this.#options;
    const delayMs = Math.max(this.#backoff.ended(), error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0);
    this.#resumption.failed(error);
    const reason = error instanceof KubeError ? error.detail : "an answer could not be understood";
    const before = this.#failing;
    // What has expired is only to be read anew.
    if (!isKubeError(error, "Gone")) this.#failing = { since: before?.since ?? clock.now(), reason };
    const detail = error instanceof KubeError ? { code: error.code } : { err: error };
    // A member that is away is asked each few seconds, and for each kind.
    log[this.#news.failed(reason) ? "warn" : "debug"](
      { ...detail, resource: resource.plural, delayMs: Math.round(delayMs) },
      error instanceof Error ? error.message : String(error),
    );
    // It may go on failing for another reason.
    this.#setState("backing-off", this.#failing?.reason !== before?.reason);
    return delayMs;
  }

  #setState(state: ReflectorState, isNews = this.#state !== state): void {
    if (this.#state === state && !isNews) return;
    this.#state = state;
    try {
      this.#options.onState?.(state);
    } catch (err) {
      this.#options.log.error({ err, resource: this.#options.resource.plural }, "state handler failed");
    }
  }
}

function sameUid(a: Stored<KubeObject>, b: Stored<KubeObject>): boolean {
  return a.metadata.uid === b.metadata.uid;
}
