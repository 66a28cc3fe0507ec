import { HOST_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import { type Amounts, addAmounts } from "../api/quantity.ts";
import type { ClusterClient, ListPage } from "../kube/client.ts";
import { isKubeError, isRefusal } from "../kube/errors.ts";
import { LIST_TIMEOUT_MS } from "../kube/list-pages.ts";
import { pods } from "../kube/resources.ts";
import { podRequests } from "../placement/requests.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Turns } from "./turns.ts";

// Others' pods tell which member is emptier, no more: what is minutes old serves for that, and a member with 10,000 of them
// sends 20 pages each time.
const PERIOD_MS = 5 * 60_000;
const LONGEST_PERIOD_MS = 60 * 60_000;
// A reading that takes long is due less often: this many times as long as its answers took lies between two.
const REST_PER_WORK = 60;
const PAGE = 500;
// More pods than any cluster has: a member that never ends its list.
const MOST_PAGES = 2_000;
// Between two pages, so that one large member neither holds up the process nor is held up itself.
const PAGE_DELAY_MS = 200;
const RETRY_MS = 5_000;
const ATTEMPTS = 5;
const RUNNING = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!=";

/** A reading under way: what was summed, and where it goes on. */
interface Reading {
  sum: Record<string, number>;
  pages: number;
  next: string | undefined;
  workMs: number;
}

/** Reads from time to time what pods that are not this host's request in a member, and keeps only the sum. */
export class ForeignUsage {
  readonly #options: ForeignUsageOptions;
  readonly #abort = new AbortController();
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #sum: Amounts | undefined;

  constructor(options: ForeignUsageOptions) {
    this.#options = options;
  }

  /** As last read; undefined before that. */
  get sum(): Amounts | undefined {
    return this.#sum;
  }

  start(): void {
    this.#plan(0);
  }

  /** The member answers again: what was never read is read now. */
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

  /** Reads once; resolves with the time until it is due again. Never rejects. */
  async #run(): Promise<number> {
    const { clock, log } = this.#options;
    const { signal } = this.#abort;
    let reading = begun();
    let attempt = 1;
    let furthest = 0;
    for (;;) {
      try {
        await this.#readOn(reading);
        return Math.min(Math.max(PERIOD_MS, reading.workMs * REST_PER_WORK), LONGEST_PERIOD_MS);
      } catch (error) {
        if (signal.aborted) return PERIOD_MS;
        // What is read again after a token has ended is no progress.
        const isFurther = reading.pages > furthest;
        furthest = Math.max(furthest, reading.pages);
        // Where it was to go on is forgotten there, and may be so each time: a reading may last longer than a token.
        if (isKubeError(error, "Gone")) reading = begun();
        else if (isRefusal(error) || !isKubeError(error)) attempt = ATTEMPTS;
        // The page that failed is asked for again.
        else if (isFurther) attempt = 1;
        log.warn({ err: error, pages: reading.pages, attempt }, "others' pods cannot be counted");
      }
      // What was read before stays: members differ by it, and the next time is soon enough.
      if (attempt >= ATTEMPTS) return PERIOD_MS;
      await clock.sleep(RETRY_MS * 2 ** (attempt - 1), signal).catch(() => {});
      attempt += 1;
    }
  }

  /** Reads the pages that are left, while no other member is read. Rejects with KubeError. */
  async #readOn(reading: Reading): Promise<void> {
    const { clock, turns, onChange } = this.#options;
    const { signal } = this.#abort;
    const release = await turns.take(signal);
    try {
      for (;;) {
        signal.throwIfAborted();
        const begunAt = clock.now();
        const { items, continue: next } = await this.#page(reading.next);
        for (const pod of items) addAmounts(reading.sum, podRequests(pod));
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
    onChange();
  }

  #page(token: string | undefined): Promise<ListPage<Pod>> {
    const { client, hostId } = this.#options;
    return client.list(pods, {
      // Proxies of a member that is a host itself run elsewhere.
      labelSelector: `${HOST_LABEL}!=${hostId},${PROXY_LABEL}!=${PROXY_LABEL_VALUE}`,
      fieldSelector: RUNNING,
      limit: PAGE,
      timeoutMs: LIST_TIMEOUT_MS,
      dropManagedFields: true,
      signal: this.#abort.signal,
      ...(token === undefined ? {} : { continue: token }),
    });
  }
}

function begun(): Reading {
  return { sum: {}, pages: 0, next: undefined, workMs: 0 };
}

export interface ForeignUsageOptions {
  readonly client: ClusterClient;
  readonly hostId: string;
  /** Shared by all members: one of them is read at a time. */
  readonly turns: Turns;
  readonly clock: Clock;
  /** The sum was read anew. */
  readonly onChange: () => void;
  readonly log: Logger;
}
