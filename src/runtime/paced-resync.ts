import type { Clock, Timer } from "./clock.ts";

export interface PacedResyncOptions<Key> {
  readonly clock: Clock;
  readonly keys: () => readonly Key[];
  /** Reconciles the keys, and calls `done` with the milliseconds that this kept the process busy. */
  readonly reconcile: (keys: readonly Key[], done: (busyMs: number) => void) => void;
  /** The rest in multiples of the cost. */
  readonly rests: number;
}

/** The rest after which resyncs take a tenth of the event loop at most, however many keys wait. */
export const LONG_RESTS = 10;

/** Repeated resyncs of all waiting keys. A rest in proportion to its cost follows each. */
export class PacedResync<Key> {
  readonly #options: PacedResyncOptions<Key>;
  #next: { readonly at: number; readonly timer: Timer } | undefined;
  #restUntil = 0;
  #underWay = false;
  #againAfterMs: number | undefined;

  constructor(options: PacedResyncOptions<Key>) {
    this.#options = options;
  }

  /** Schedules a resync after `delayMs`, or after the rest if that is later. Calls before it begins coalesce. */
  request(delayMs: number): void {
    if (this.#underWay) {
      this.#againAfterMs = Math.min(this.#againAfterMs ?? delayMs, delayMs);
      return;
    }
    const now = this.#options.clock.now();
    const at = Math.max(now + delayMs, this.#restUntil);
    if (this.#next !== undefined && this.#next.at <= at) return;
    this.#next?.timer.cancel();
    this.#next = undefined;
    if (at <= now) this.#begin();
    else this.#next = { at, timer: this.#options.clock.after(at - now, () => this.#begin()) };
  }

  stop(): void {
    this.#next?.timer.cancel();
    this.#next = undefined;
    this.#againAfterMs = undefined;
  }

  #begin(): void {
    this.#next = undefined;
    this.#underWay = true;
    const { keys, reconcile, rests, clock } = this.#options;
    reconcile(keys(), (busyMs) => {
      this.#underWay = false;
      this.#restUntil = clock.now() + rests * busyMs;
      const delayMs = this.#againAfterMs;
      this.#againAfterMs = undefined;
      if (delayMs !== undefined) this.request(delayMs);
    });
  }
}
