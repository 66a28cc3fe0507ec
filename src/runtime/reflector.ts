import { unlessAborted } from "../kube/abort.ts";
import type { ClusterClient, ListOptions, WatchEvent } from "../kube/client.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";
import { TimeSlice } from "../kube/event-loop.ts";
import type { ByteBudget } from "../kube/limits.ts";
import { PAGE_SIZE, type Selection, selectionOf } from "../kube/list.ts";
import { type KubeObject, type ObjectKey, objectKey, type Stored } from "../kube/objects.ts";
import { ServedResource } from "../kube/optional-resource.ts";
import type { OptionalResource, Resource } from "../kube/resources.ts";
import type { LineLog } from "../telemetry/silent-log.ts";
import { ConnectionBackoff } from "./backoff.ts";
import { type Clock, InterruptibleSleep } from "./clock.ts";
import { FailureLogLimiter } from "./internal/failure-log-limiter.ts";
import { RelistPolicy, WATCH_IDLE_MS } from "./internal/relist-policy.ts";
import { type Rest, RestPolicy } from "./internal/rest-policy.ts";
import { overBudget, StagedList, StoreCharges } from "./internal/store-budget.ts";
import { failureOf, type ReflectorFailure } from "./reflector-failure.ts";
import type { ReflectorState } from "./reflector-state.ts";
import { rolledBackTo, sameUid, sameVersion } from "./resource-version.ts";
import { type IndexFunction, type ReadStore, type ReflectorEvent, Store } from "./store.ts";

export type { Rest } from "./internal/rest-policy.ts";
export type { ReflectorState } from "./reflector-state.ts";
export type { ReflectorEvent } from "./store.ts";

export interface ReflectorOptions<T extends KubeObject> extends Selection {
  readonly client: ClusterClient;
  /** An optional resource is read in the version that the API server serves. */
  readonly resource: Resource<T> | OptionalResource<T>;
  /** Shrinks objects before they are stored; may mutate its argument. */
  readonly transform?: (object: Stored<T>) => Stored<T>;
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
  /** Limits the stored bytes, possibly shared with other stores. A list or event beyond it is an error. */
  readonly budget?: ByteBudget;
  /** Returns the bytes to charge for an object that `transform` shrank. Default: its size on the wire. */
  readonly sizeOf?: (object: Stored<T>) => number;
  /** Keeps `metadata.managedFields`, which are half of an object's size. Default: they are dropped. */
  readonly keepManagedFields?: boolean;
  /** Reads metadata only; `T` has to promise no more. */
  readonly metadataOnly?: boolean;
  /** Objects per page of a list; default 500. */
  readonly pageSize?: number;
  /** Closes the watch while the store is empty, unless it is needed. Default: it stays open. */
  readonly rest?: Rest;
  readonly clock: Clock;
  readonly log: LineLog;
  readonly onEvent?: (event: ReflectorEvent<T>) => void;
  readonly onState?: (state: ReflectorState) => void;
}

const BACKOFF = { initialMs: 200, maxMs: 10_000, healthyMs: 10_000 };
// Jitter, so that the watches of a process do not all end at once.
const WATCH_SECONDS = { least: 240, spread: 120 };
// Clusters seldom get new APIs.
const NOT_SERVED_AGAIN_MS = 60_000;

/**
 * Keeps a store in step with one resource of one cluster across disconnects.
 *
 * Lists are consistent reads (no resourceVersion): `resourceVersion=0` may return stale data, and callers take absence from
 * a list as proof. A list is staged and compared with the store, so that deletions and replacements (same name, new uid)
 * missed by the watch still produce events.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #store: Store<T>;
  readonly #transform: (object: Stored<T>) => Stored<T>;
  readonly #backoff: ConnectionBackoff;
  readonly #abort = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  readonly #sleep: InterruptibleSleep;
  readonly #policy: RelistPolicy;
  readonly #rest: RestPolicy;
  readonly #charges: StoreCharges;
  readonly #served: ServedResource<T>;
  #listed: Resource<T> | undefined;
  #running: Promise<void> | undefined;
  #state: ReflectorState = "idle";
  #lastListedAt: number | undefined;
  #listingSince: number | undefined;
  #failing: ReflectorFailure | undefined;
  readonly #logLimiter: FailureLogLimiter;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#policy = new RelistPolicy(options.pageSize ?? PAGE_SIZE, options.clock);
    this.#rest = new RestPolicy(options.rest, options.clock);
    this.#charges = new StoreCharges(options.budget);
    this.#served = new ServedResource(options.client, options.resource);
    this.#store = new Store(options.indexes);
    this.#transform = options.transform ?? ((object) => object);
    this.#backoff = new ConnectionBackoff({ ...BACKOFF, clock: options.clock });
    this.#sleep = new InterruptibleSleep(options.clock);
    this.#logLimiter = new FailureLogLimiter(options.clock);
  }

  get plural(): string {
    return this.#options.resource.plural;
  }

  get store(): ReadStore<T> {
    return this.#store;
  }

  get state(): ReflectorState {
    return this.#state;
  }

  get failing(): ReflectorFailure | undefined {
    return this.#failing;
  }

  /** When the server last sent a page, an event or a bookmark; epoch ms. */
  get lastContactMs(): number | undefined {
    return this.#policy.lastContactMs;
  }

  /** When the last complete list began; epoch ms. The list shows every write that finished before. */
  get lastListedAt(): number | undefined {
    return this.#lastListedAt;
  }

  /** Since when the complete state is being read, attempts that failed included; epoch ms. Undefined while it is not. */
  get listingSince(): number | undefined {
    return this.#listingSince;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error("the reflector was stopped"));
    await this.#running;
    this.#charges.release();
    this.#setState("stopped");
  }

  /** Resolves once the store held the complete state and delivered its events. Rejects with the signal's reason. */
  async whenSynced(signal?: AbortSignal): Promise<void> {
    await (signal === undefined ? this.#synced.promise : unlessAborted(this.#synced.promise, signal));
  }

  /** Ends the current backoff or rest, because the server is known to answer again. A first list waits for its turn all the same. */
  retry(): void {
    if (this.#state === "idle") return;
    if (this.#state !== "resting" || this.#rest.returned()) this.#sleep.end();
  }

  /** Makes the first list at once, since somebody waits for it. */
  hurry(): void {
    if (this.#state !== "idle") return;
    this.#rest.hurry();
    this.#sleep.end();
  }

  /** Opens the watch if it rests. It stays open for some minutes after the last call, and while the store has objects. */
  need(): void {
    if (this.#rest.need()) this.#sleep.end();
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    await this.#rest.firstTurn(this.#sleep, signal);
    let delayMs = 0;
    while (!signal.aborted) {
      if (delayMs > 0) await this.#sleep.wait(delayMs, signal);
      if (signal.aborted) return;
      try {
        const resource = await this.#served.find(signal);
        delayMs = resource === undefined ? await this.#notServed(signal) : await this.#follow(resource, signal);
      } catch (error) {
        if (signal.aborted) return;
        delayMs = this.#failed(error);
      }
    }
  }

  /** Follows the resource until its watch ends, or may rest. Returns the delay before the next attempt in ms. */
  async #follow(resource: Resource<T>, signal: AbortSignal): Promise<number> {
    const version = await this.#rest.inTurn(this.#store.size, signal, () => this.#begin(resource, signal));
    if (this.#rest.mayRest(this.#store.size)) {
      this.#policy.relist();
      // Begins before others hear of it: whoever needs the watch then ends it.
      const rest = this.#sleep.wait(this.#rest.begin(), signal);
      this.#working("resting");
      await rest;
      return 0;
    }
    await this.#watch(resource, version, signal);
    const delayMs = this.#backoff.ended();
    if (delayMs > 0) this.#setState("backing-off");
    return delayMs;
  }

  /** Lists first when the store is not current. */
  async #begin(resource: Resource<T>, signal: AbortSignal): Promise<string> {
    if (this.#listed !== resource) this.#policy.relist();
    const before = this.#policy.version;
    if (before !== undefined && this.#policy.doubted) await this.#confirm(resource, before, signal);
    this.#policy.begun();
    const { version } = this.#policy;
    if (version !== undefined) return version;
    this.#listingSince ??= this.#options.clock.now();
    // A list in a rest is no news.
    if (this.#state !== "resting" || !this.#rest.mayRest(this.#store.size)) this.#setState("listing");
    return this.#list(resource, signal);
  }

  /** Detects a server whose etcd was restored from a backup. */
  async #confirm(resource: Resource<T>, version: string, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#options;
    const goneBack = await rolledBackTo(client, resource, version, { ...selectionOf(this.#options), signal });
    if (goneBack !== undefined) {
      log.warn({ resource: resource.plural, version, now: goneBack }, "the server has gone back in time");
    }
    this.#policy.compared(goneBack !== undefined);
  }

  /** Returns the delay before discovery is repeated. */
  async #notServed(signal: AbortSignal): Promise<number> {
    const nothing = new StagedList<T>(this.#options.budget);
    this.#charges.commit(nothing);
    this.#listed = undefined;
    this.#listingSince = undefined;
    this.#failing = undefined;
    await this.#replaceAll(nothing.objects, signal);
    this.#setState("not-served");
    const { resource } = this.#options;
    return ("versions" in resource ? resource.lookAgainMs : undefined) ?? NOT_SERVED_AGAIN_MS;
  }

  async #list(resource: Resource<T>, signal: AbortSignal): Promise<string> {
    const begunAt = this.#options.clock.now();
    const staged = new StagedList<T>(this.#options.budget);
    let resourceVersion: string;
    try {
      resourceVersion = await this.#readPages(resource, staged, signal);
      this.#charges.commit(staged);
    } finally {
      staged.release();
    }
    await this.#replaceAll(staged.objects, signal);
    this.#lastListedAt = begunAt;
    this.#listingSince = undefined;
    this.#listed = resource;
    this.#policy.listed(resourceVersion);
    return resourceVersion;
  }

  async #readPages(resource: Resource<T>, staged: StagedList<T>, signal: AbortSignal): Promise<string> {
    const { client } = this.#options;
    const isListedAgain = this.#listed === resource;
    const { pageSize } = this.#policy;
    let token: string | undefined;
    for (;;) {
      const page = await client.list(resource, {
        signal,
        timeoutMs: this.#policy.listTimeoutMs,
        ...selectionOf(this.#options),
        ...this.#answer(),
        limit: pageSize,
        continue: token,
      });
      this.#policy.heard();
      // The budget counts the total, so the page's size is split evenly.
      const even = Math.ceil(page.size / page.items.length);
      for (const item of page.items) this.#stage(staged, item, even, isListedAgain);
      token = page.continue;
      if (token === undefined) return page.resourceVersion;
    }
  }

  #answer(): Pick<ListOptions, "dropManagedFields" | "metadataOnly"> {
    const { keepManagedFields, metadataOnly } = this.#options;
    return { dropManagedFields: keepManagedFields !== true, metadataOnly };
  }

  #stage(staged: StagedList<T>, item: Stored<T>, size: number, isListedAgain: boolean): void {
    const key = objectKey(item.metadata);
    const known = this.#store.get(key);
    const held = this.#charges.of(key);
    // Keeping the stored object of the same version halves the memory of a relist.
    if (isListedAgain && known !== undefined && sameUid(known, item) && sameVersion(known, item)) {
      staged.keep(key, known, held);
      return;
    }
    const object = this.#transform(item);
    if (!staged.add(key, object, this.#options.sizeOf?.(object) ?? size, held)) throw overBudget(this.#options);
  }

  /** Emits the differences, and marks the store synced. */
  async #replaceAll(staged: ReadonlyMap<ObjectKey, Stored<T>>, signal: AbortSignal): Promise<void> {
    const slice = new TimeSlice(signal);
    for (const event of await this.#store.replace(staged, slice)) {
      this.#emit(event);
      if (slice.due) await slice.next();
    }
    this.#store.synced = true;
    this.#synced.resolve();
  }

  async #watch(resource: Resource<T>, resourceVersion: string, signal: AbortSignal): Promise<void> {
    const events = this.#options.client.watch(resource, {
      resourceVersion,
      signal,
      timeoutSeconds: WATCH_SECONDS.least + Math.floor(Math.random() * WATCH_SECONDS.spread),
      idleTimeoutMs: WATCH_IDLE_MS,
      onOpen: () => this.#working("watching"),
      ...selectionOf(this.#options),
      ...this.#answer(),
    });
    for await (const event of events) {
      if (signal.aborted) return;
      this.#policy.heard();
      this.#apply(event);
    }
  }

  #working(state: "watching" | "resting"): void {
    const { client, resource, log } = this.#options;
    if (this.#logLimiter.shouldLogRecovery()) log.info(`${resource.plural} of ${client.cluster} are followed again`);
    this.#failing = undefined;
    this.#policy.opened();
    this.#backoff.working();
    this.#setState(state);
  }

  #apply(event: WatchEvent<T>): void {
    if (event.type === "BOOKMARK") {
      this.#policy.bookmark(event.resourceVersion);
      return;
    }
    const object = this.#transform(event.object);
    const { metadata } = object;
    this.#policy.reached(metadata.resourceVersion);
    const key = objectKey(metadata);
    const previous = this.#store.get(key);
    if (event.type === "DELETED") {
      if (previous === undefined) return;
      this.#charges.charge(key, 0);
      this.#store.delete(key);
      this.#emit({ type: "deleted", object: sameUid(previous, object) ? object : previous });
      return;
    }
    if (!this.#charges.charge(key, this.#options.sizeOf?.(object) ?? event.size)) throw overBudget(this.#options);
    const isReplaced = previous !== undefined && !sameUid(previous, object);
    if (isReplaced) {
      this.#store.delete(key);
      this.#emit({ type: "deleted", object: previous });
    }
    if (previous === undefined || isReplaced) {
      this.#store.set(object);
      this.#emit({ type: "added", object });
    } else if (!sameVersion(previous, object)) {
      this.#store.set(object);
      this.#emit({ type: "updated", object, previous });
    }
  }

  #emit(event: ReflectorEvent<T>): void {
    const { name, namespace } = event.object.metadata;
    this.#call("event", () => this.#options.onEvent?.(event), { namespace, name });
  }

  #call(handler: "event" | "state", call: () => void, of: object): void {
    try {
      call();
    } catch (err) {
      this.#options.log.error({ err, resource: this.plural, ...of }, `${handler} handler failed`);
    }
  }

  /** Returns the delay before the next attempt in ms. */
  #failed(error: unknown): number {
    const { log, clock } = this.#options;
    const delayMs = Math.max(this.#backoff.ended(), error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0);
    this.#policy.failed(error);
    this.#served.doubt(error);
    const before = this.#failing;
    const failure = failureOf(error, before, clock.now());
    // An expired resourceVersion only needs a relist and is no failure.
    if (!isKubeError(error, "Gone")) this.#failing = failure;
    const detail = error instanceof KubeError ? { code: error.code } : { err: error };
    const fields = { ...detail, resource: this.plural, delayMs: Math.round(delayMs) };
    // An unreachable cluster fails every few seconds for every resource, so most failures are logged at debug level.
    const level = this.#logLimiter.shouldLogFailure(failure.reason) ? "warn" : "debug";
    log[level](fields, error instanceof Error ? error.message : String(error));
    // A new reason is news even in the same state.
    this.#setState("backing-off", this.#failing?.reason !== before?.reason);
    return delayMs;
  }

  #setState(state: ReflectorState, isNews = this.#state !== state): void {
    if (this.#state === state && !isNews) return;
    this.#state = state;
    this.#call("state", () => this.#options.onState?.(state), {});
  }
}
