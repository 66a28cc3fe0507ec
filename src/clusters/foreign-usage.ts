import type { Cluster } from "../api/cluster.ts";
import { HOST_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import { type Amounts, addAmounts, parseAmounts } from "../api/quantity.ts";
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

type NodeSums = Map<string, Record<string, number>>;

interface Reading {
  sum: Record<string, number>;
  byNode: NodeSums;
  /** The part of each Job, by its uid. */
  byJob: Map<string, NodeSums>;
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
  #byNode: ReadonlyMap<string, Amounts> = new Map();
  #byJob: ReadonlyMap<string, ReadonlyMap<string, Amounts>> = new Map();

  constructor(options: ForeignUsageOptions) {
    this.#options = options;
  }

  get sum(): Amounts | undefined {
    return this.#sum;
  }

  /** The part of the sum on one node, without the pods of some of the member's Jobs, given by uid. */
  on(node: string, withoutJobs: Iterable<string> = []): Amounts {
    const sum = { ...this.#byNode.get(node) };
    for (const uid of withoutJobs) addAmounts(sum, this.#byJob.get(uid)?.get(node) ?? {}, -1);
    return sum;
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
        this.#plan(restMs);
      });
    });
  }

  /** Returns the delay before the next reading in ms. Never rejects. */
  async #run(): Promise<number> {
    const { clock, log } = this.#options;
    const { signal } = this.#abort;
    let reading = begun();
    let attempt = 1;
    let furthest = 0;
    for (;;) {
      try {
        await this.#readOn(reading);
        return Math.min(Math.max(COUNT_EVERY_MS, reading.workMs * REST_PER_WORK), LONGEST_PERIOD_MS);
      } catch (error) {
        if (signal.aborted) return COUNT_EVERY_MS;
        // Pages that are read again after an expired token are no progress.
        const isFurther = reading.pages > furthest;
        furthest = Math.max(furthest, reading.pages);
        // The continue token expired. It may expire each time, since a reading may last longer than a token.
        if (isKubeError(error, "Gone")) reading = begun();
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
    const { clock, mutex, onChange } = this.#options;
    const { signal } = this.#abort;
    const release = await mutex.lock(signal);
    try {
      for (;;) {
        signal.throwIfAborted();
        const begunAt = clock.now();
        const { items, continue: next } = await this.#page(reading.next);
        for (const pod of items) {
          const requests = podRequests(pod);
          addAmounts(reading.sum, requests);
          const node = pod.spec?.nodeName ?? "";
          addOn(reading.byNode, node, requests);
          const job = pod.metadata?.ownerReferences?.find(
            ({ kind, controller }) => kind === "Job" && controller === true,
          );
          if (job === undefined) continue;
          const ofJob: NodeSums = reading.byJob.get(job.uid) ?? new Map();
          addOn(ofJob, node, requests);
          reading.byJob.set(job.uid, ofJob);
        }
        reading.workMs += clock.now() - begunAt;
        reading.pages += 1;
        reading.next = next;
        if (next === undefined || reading.pages >= MOST_PAGES) break;
        await clock.sleep(PAGE_DELAY_MS, signal);
      }
    } finally {
      release();
    }
    this.#sum = reading.sum;
    this.#byNode = reading.byNode;
    this.#byJob = reading.byJob;
    onChange();
  }

  #page(token: string | undefined): Promise<ListPage<Pod>> {
    const { client, hostId } = this.#options;
    return client.list(pods, {
      // Proxies of a member that is itself a host run elsewhere.
      labelSelector: `${HOST_LABEL}!=${hostId},${PROXY_LABEL}!=${PROXY_LABEL_VALUE}`,
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

function begun(): Reading {
  return { sum: {}, byNode: new Map(), byJob: new Map(), pages: 0, next: undefined, workMs: 0 };
}

export interface ForeignUsageOptions {
  readonly client: ClusterClient;
  readonly hostId: string;
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
