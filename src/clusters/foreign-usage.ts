import type { Cluster } from "../api/cluster.ts";
import { HOST_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE, QUEUED_OBJECT_LABEL } from "../api/keys.ts";
import { objectKey, type Pod } from "../api/kubernetes.ts";
import { type Amounts, addAmounts, parseAmounts } from "../api/quantity.ts";
import { isInShard, type Shard } from "../api/shards.ts";
import type { ClusterClient, ListPage } from "../kube/client.ts";
import { isKubeError, isRefusal } from "../kube/errors.ts";
import { LIST_TIMEOUT_MS } from "../kube/list.ts";
import { pods } from "../kube/resources.ts";
import { podRequests } from "../placement/requests.ts";
import { backoffMs } from "../runtime/backoff.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Mutex } from "../runtime/mutex.ts";
import type { Logger } from "../telemetry/logger.ts";

// Foreign usage only ranks members, so minutes of age do no harm, and 10,000 pods are 20 pages.
const COUNT_EVERY_MS = 5 * 60_000;
const LONGEST_PERIOD_MS = 60 * 60_000;
// Pause between two readings that no placement asked for: people see the sum in the Cluster's status.
const UNASKED_EVERY_MS = 30 * 60_000;
// Pause after a reading, in multiples of its duration.
const REST_PER_WORK = 60;
const PAGE = 500;
// More pages than any cluster has. A hostile member may never end its list.
const MOST_PAGES = 2_000;
// Pause between two pages, so that a large member delays neither this process nor itself.
const PAGE_DELAY_MS = 200;
const RETRY = { initialMs: 5_000, maxMs: 60_000 };
const ATTEMPTS = 5;
const RUNNING = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!=";

// Sums by node are asked for every second or so where a queue follows the member.
const DETAIL_KEPT_MS = 60_000;

type NodeSums = Map<string, Record<string, number>>;

interface Detail {
  readonly byNode: NodeSums;
  /** The part of each Job of the member, by its key, and of each whole object of a queue, by the object's uid on the host. */
  readonly byOwner: Map<string, NodeSums>;
}

export interface ForeignByNode {
  /** Returns the sum on one node, without the pods of some Jobs of the member, by key, and objects of the host's queues, by uid. */
  on(node: string, without?: Iterable<string>): Amounts;
}

interface Reading {
  sum: Record<string, number>;
  /** The requests of delegates of other shards. */
  shards: Record<string, number>;
  /** Undefined: nobody asks for it. */
  detail: Detail | undefined;
  pages: number;
  next: string | undefined;
  workMs: number;
}

/** Periodically sums the requests of a member's pods that this host did not create. */
export class ForeignUsage {
  readonly #options: ForeignUsageOptions;
  readonly #abort = new AbortController();
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #sum: Amounts | undefined;
  #occupied: Amounts | undefined;
  #byNode: ForeignByNode | undefined;
  #detailUntil = Number.NEGATIVE_INFINITY;
  #isAsked = false;
  /** When the sum is too old for placement; epoch ms. */
  #agedAt = Number.POSITIVE_INFINITY;

  constructor(options: ForeignUsageOptions) {
    this.#options = options;
  }

  get sum(): Amounts | undefined {
    return this.#sum;
  }

  /** The sum with the delegates of other shards: what is taken beside the delegates of this one. */
  get occupied(): Amounts | undefined {
    return this.#occupied;
  }

  /** Has the sum read as often as placement needs it. */
  ask(): void {
    this.#isAsked = true;
    if (this.#options.clock.now() < this.#agedAt) return;
    this.#agedAt = Number.POSITIVE_INFINITY;
    this.#plan(0);
  }

  /** Returns undefined until it was read, which this asks for: sums by node are kept only while somebody asks. */
  byNode(): ForeignByNode | undefined {
    this.ask();
    const now = this.#options.clock.now();
    const isNew = this.#detailUntil < now;
    this.#detailUntil = now + DETAIL_KEPT_MS;
    // A reading that is under way has none: the next one follows it at once.
    if (isNew && this.#byNode === undefined && this.#running === undefined) this.#plan(0);
    return this.#byNode;
  }

  start(): void {
    this.#plan(0);
  }

  /** Reads now if nothing was read yet. */
  retry(): void {
    if (this.#sum === undefined && this.#running === undefined) this.#plan(0);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#timer?.cancel();
    await this.#running;
  }

  #plan(delayMs: number): void {
    if (this.#abort.signal.aborted) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(delayMs, () => {
      this.#running = this.#run().then((restMs) => {
        this.#running = undefined;
        this.#agedAt = this.#isAsked ? Number.POSITIVE_INFINITY : this.#options.clock.now() + restMs;
        this.#plan(this.#isAsked || this.#sum === undefined ? restMs : Math.max(restMs, UNASKED_EVERY_MS));
        this.#isAsked = false;
      });
    });
  }

  get #wantsDetail(): boolean {
    return this.#options.clock.now() <= this.#detailUntil;
  }

  /** Returns the delay before the next reading in ms. Never rejects. */
  async #run(): Promise<number> {
    const { clock, log } = this.#options;
    const { signal } = this.#abort;
    let reading = begun(this.#wantsDetail);
    let attempt = 1;
    let furthest = 0;
    for (;;) {
      try {
        await this.#readOn(reading);
        if (reading.detail === undefined && this.#wantsDetail) return 0;
        return Math.min(Math.max(COUNT_EVERY_MS, reading.workMs * REST_PER_WORK), LONGEST_PERIOD_MS);
      } catch (error) {
        if (signal.aborted) return COUNT_EVERY_MS;
        // Pages that are read again after an expired token are no progress.
        const isFurther = reading.pages > furthest;
        furthest = Math.max(furthest, reading.pages);
        // The continue token expired. It may expire each time, since a reading may last longer than a token.
        if (isKubeError(error, "Gone")) reading = begun(this.#wantsDetail);
        else if (isRefusal(error) || !isKubeError(error)) attempt = ATTEMPTS;
        else if (isFurther) attempt = 1;
        log.warn({ err: error, pages: reading.pages, attempt }, "others' pods cannot be counted");
      }
      if (attempt >= ATTEMPTS) return COUNT_EVERY_MS;
      await clock.sleep(backoffMs(attempt - 1, RETRY), signal).catch(() => {});
      attempt += 1;
    }
  }

  /** Reads the remaining pages while no other member is read. Rejects with KubeError. */
  async #readOn(reading: Reading): Promise<void> {
    const { mutex, onChange } = this.#options;
    await mutex.run(this.#abort.signal, () => this.#readPages(reading));
    this.#sum = reading.sum;
    addAmounts(reading.shards, reading.sum);
    this.#occupied = reading.shards;
    this.#byNode = reading.detail && byNodeOf(reading.detail);
    onChange();
  }

  async #readPages(reading: Reading): Promise<void> {
    const { clock, hostId, shard } = this.#options;
    const { signal } = this.#abort;
    for (;;) {
      signal.throwIfAborted();
      const begunAt = clock.now();
      const { items, continue: next } = await this.#page(reading.next);
      for (const pod of items) {
        const requests = podRequests(pod);
        if (pod.metadata.labels?.[HOST_LABEL] === hostId) {
          if (!isInShard(shard, pod.metadata.namespace)) addAmounts(reading.shards, requests);
          continue;
        }
        addAmounts(reading.sum, requests);
        if (reading.detail !== undefined) addDetail(reading.detail, pod, requests);
      }
      reading.workMs += clock.now() - begunAt;
      reading.pages += 1;
      reading.next = next;
      if (next === undefined || reading.pages >= MOST_PAGES) return;
      await clock.sleep(PAGE_DELAY_MS, signal);
    }
  }

  #page(token: string | undefined): Promise<ListPage<Pod>> {
    const { client, hostId, shard } = this.#options;
    // Proxies of a member that is itself a host run elsewhere.
    const notProxies = `${PROXY_LABEL}!=${PROXY_LABEL_VALUE}`;
    return client.list(pods, {
      labelSelector: shard.count === 1 ? `${HOST_LABEL}!=${hostId},${notProxies}` : notProxies,
      fieldSelector: RUNNING,
      limit: PAGE,
      timeoutMs: LIST_TIMEOUT_MS,
      dropManagedFields: true,
      signal: this.#abort.signal,
      continue: token,
    });
  }
}

function addOn(sums: NodeSums, node: string, requests: Amounts): void {
  const sum = sums.get(node) ?? {};
  addAmounts(sum, requests);
  sums.set(node, sum);
}

function addDetail({ byNode, byOwner }: Detail, { metadata, spec }: Pod, requests: Amounts): void {
  const node = spec?.nodeName ?? "";
  addOn(byNode, node, requests);
  const job = metadata?.ownerReferences?.find(({ kind, controller }) => kind === "Job" && controller === true);
  const name = job && objectKey({ namespace: metadata?.namespace, name: job.name });
  const owner = metadata?.labels?.[QUEUED_OBJECT_LABEL] ?? name;
  if (owner === undefined) return;
  const own: NodeSums = byOwner.get(owner) ?? new Map();
  addOn(own, node, requests);
  byOwner.set(owner, own);
}

function byNodeOf({ byNode, byOwner }: Detail): ForeignByNode {
  return {
    on: (node, without = []) => {
      const sum = { ...byNode.get(node) };
      for (const uid of without) addAmounts(sum, byOwner.get(uid)?.get(node) ?? {}, -1);
      return sum;
    },
  };
}

function begun(isDetailed: boolean): Reading {
  const detail = isDetailed ? { byNode: new Map(), byOwner: new Map() } : undefined;
  return { sum: {}, shards: {}, detail, pages: 0, next: undefined, workMs: 0 };
}

export interface ForeignUsageOptions {
  /** Shows the pods of all shards. */
  readonly client: ClusterClient;
  readonly hostId: string;
  readonly shard: Shard;
  /** Shared by all members, so that one is read at a time. */
  readonly mutex: Mutex;
  readonly clock: Clock;
  readonly onChange: () => void;
  readonly log: Logger;
}

/** Returns the foreign usage that an earlier controller or connection recorded in the Cluster. */
export function recordedForeignUsage({ status }: Cluster): Amounts | undefined {
  return status?.requestedByOthers && parseAmounts(status.requestedByOthers);
}
