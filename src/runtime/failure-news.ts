import type { Clock } from "./clock.ts";

// Whoever looks at the log of an hour finds what fails.
const AGAIN_AFTER_MS = 60 * 60_000;
// A server may give another reason each time: what comes after these is one more, whatever it says.
const MOST_REASONS = 10;
const ANY_OTHER = Symbol("any other reason");

/** What is worth a line of what fails again and again: each reason when it is new, and once an hour while it lasts. */
export class FailureNews {
  readonly #clock: Pick<Clock, "now">;
  /** When each was told; epoch ms. */
  readonly #told = new Map<string | typeof ANY_OTHER, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** It has failed, once more or for the first time; true when that is to be told. */
  failed(reason: string): boolean {
    const now = this.#clock.now();
    const isListed = this.#told.has(reason) || this.#told.size < MOST_REASONS;
    const key = isListed ? reason : ANY_OTHER;
    const at = this.#told.get(key);
    if (at !== undefined && now - at < AGAIN_AFTER_MS) return false;
    this.#told.set(key, now);
    return true;
  }

  /** It works; true when that it did not was told. */
  works(): boolean {
    const wasTold = this.#told.size > 0;
    this.#told.clear();
    return wasTold;
  }
}
