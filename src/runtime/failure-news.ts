import type { Clock } from "./clock.ts";

// Whoever looks at the log of an hour finds what fails.
const AGAIN_AFTER_MS = 60 * 60_000;
// What opens and is cut at once, again and again, works and fails in turns: it is told this often, both ways.
const FLAPPING_AGAIN_MS = 5 * 60_000;
const HEALTHY_MS = 10_000;
// A server may give another reason each time: what comes after these is one more, whatever it says.
const MOST_REASONS = 10;
const ANY_OTHER = Symbol("any other reason");

/** What is worth a line of what fails again and again: each reason when it is new, and once an hour while it lasts. */
export class FailureNews {
  readonly #clock: Pick<Clock, "now">;
  /** When each was told; epoch ms. */
  readonly #told = new Map<string | typeof ANY_OTHER, number>();
  #workingSince: number | undefined;
  /** Its recovery is still to be told. */
  #owed = false;
  #flaps = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** It has failed, once more or for the first time; true when that is to be told. */
  failed(reason: string): boolean {
    const now = this.#clock.now();
    if (this.#workingSince !== undefined) {
      this.#flaps = now - this.#workingSince < HEALTHY_MS;
      if (!this.#flaps) this.#told.clear();
      this.#workingSince = undefined;
    }
    const isListed = this.#told.has(reason) || this.#told.size < MOST_REASONS;
    const key = isListed ? reason : ANY_OTHER;
    const at = this.#told.get(key);
    if (at !== undefined && now - at < (this.#flaps ? FLAPPING_AGAIN_MS : AGAIN_AFTER_MS)) return false;
    this.#told.set(key, now);
    this.#owed = true;
    return true;
  }

  /** It works; true when that is to be told: that it did not was, since the last time. */
  works(): boolean {
    this.#workingSince ??= this.#clock.now();
    const wasOwed = this.#owed;
    this.#owed = false;
    return wasOwed;
  }
}
