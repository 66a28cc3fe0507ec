import { CREATE_ENDS_MS } from "../../kube/request-ends.ts";
import type { Clock, InterruptibleSleep } from "../clock.ts";
import type { Mutex } from "../mutex.ts";

/** How reflectors of one cluster share the rests between their lists. */
export interface Rest {
  /** Lists of the cluster take turns: together they need one connection. */
  readonly mutex: Mutex;
  /** The cluster's place among all, from 0 to 1. */
  readonly share: number;
  /** Returns over how many ms the first lists of all clusters are spread. */
  readonly spreadMs: () => number;
}

// A workload takes less to replace its pods, and most CronJobs to start the next.
const KEPT_MS = 5 * 60_000;
// Only objects of which no request of this process knows come meanwhile: by hand, or from a backup.
const REST_MS = 15 * 60_000;

/** Decides whether a watch may close while its store is empty, and when the store is read again. */
export class RestPolicy {
  readonly #rest: Rest | undefined;
  readonly #clock: Pick<Clock, "now">;
  #neededUntil = Number.NEGATIVE_INFINITY;
  #rests = 0;
  #isHurried = false;
  #waiting: AbortController | undefined;

  constructor(rest: Rest | undefined, clock: Pick<Clock, "now">) {
    this.#rest = rest;
    this.#clock = clock;
  }

  /** Has the first list wait for no turn. */
  hurry(): void {
    this.#isHurried = true;
  }

  /** Waits for the first list's turn among those of other clusters, more of which may come meanwhile. */
  async firstTurn(sleep: InterruptibleSleep, signal: AbortSignal): Promise<void> {
    for (let waited = 0; !signal.aborted && waited < this.#firstMs; ) {
      const ms = this.#firstMs - waited;
      await sleep.wait(ms, signal);
      waited += ms;
    }
  }

  /** The delay before the first list in ms. */
  get #firstMs(): number {
    return this.#rest === undefined || this.#isHurried || !this.mayRest(0)
      ? 0
      : this.#rest.share * this.#rest.spreadMs();
  }

  /** Reports whether nobody needed the watch before. */
  need(): boolean {
    const now = this.#clock.now();
    const isNew = now >= this.#neededUntil;
    this.#neededUntil = now + KEPT_MS;
    this.#waiting?.abort();
    return isNew;
  }

  /** Reports whether a store of this size needs no watch. */
  mayRest(size: number): boolean {
    return this.#rest !== undefined && size === 0 && this.#clock.now() >= this.#neededUntil;
  }

  /** Reads a store of this size, which waits for the cluster's other lists if it needs no watch. */
  inTurn<T>(size: number, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
    if (this.#rest === undefined || !this.mayRest(size)) return read();
    this.#waiting = new AbortController();
    return this.#rest.mutex.lock(AbortSignal.any([signal, this.#waiting.signal])).then(
      (release) => read().finally(release),
      // The watch is needed now, or this list is not.
      () => read(),
    );
  }

  /** Returns the duration of the rest that begins now in ms. The first one ends when no earlier request takes effect any more. */
  begin(): number {
    this.#rests += 1;
    return (this.#rests === 1 ? CREATE_ENDS_MS : REST_MS) * (1 + (this.#rest?.share ?? 0) / 2);
  }

  /** Reports whether a rest is to end, as the cluster was away and requests from before may take effect. A first rest ends soon. */
  returned(): boolean {
    const isFirst = this.#rests === 1;
    if (!isFirst) this.#rests = 0;
    return !isFirst;
  }
}
