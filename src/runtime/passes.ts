import type { Clock, Timer } from "./clock.ts";

/** The keys of a pass, and how to reconcile them. */
export interface PassesOptions<Key> {
  readonly clock: Clock;
  /** Returns the keys of the next pass, in order. */
  readonly keys: () => readonly Key[];
  /** Reconciles the keys, and calls `done` with the milliseconds that this kept the process busy. */
  readonly look: (keys: readonly Key[], done: (busyMs: number) => void) => void;
}

// Passes take a tenth of the event loop at most, however many keys wait.
const RESTS = 10;

/** Repeated passes over all waiting keys. Each pass is followed by a rest in proportion to its cost. */
export class Passes<Key> {
  readonly #options: PassesOptions<Key>;
  #next: { readonly at: number; readonly timer: Timer } | undefined;
  #restUntil = 0;
  #underWay = false;
  /** The earliest pass asked for while one was running. */
  #againAfterMs: number | undefined;

  constructor(options: PassesOptions<Key>) {
    this.#options = options;
  }

  /** Schedules a pass after `delayMs`, or after the rest if that is later. Calls before it begins coalesce. */
  ask(delayMs: number): void {
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

  /** Cancels the scheduled pass. */
  stop(): void {
    this.#next?.timer.cancel();
    this.#next = undefined;
    this.#againAfterMs = undefined;
  }

  #begin(): void {
    this.#next = undefined;
    this.#underWay = true;
    const { keys, look, clock } = this.#options;
    look(keys(), (busyMs) => {
      this.#underWay = false;
      this.#restUntil = clock.now() + RESTS * busyMs;
      const delayMs = this.#againAfterMs;
      this.#againAfterMs = undefined;
      if (delayMs !== undefined) this.ask(delayMs);
    });
  }
}
