import type { Clock } from "../clock.ts";

// An hour of logs always contains a lasting failure.
const LOG_AGAIN_AFTER_MS = 60 * 60_000;
// Limits how often a flapping connection is logged, in either direction.
const FLAPPING_AGAIN_MS = 5 * 60_000;
const HEALTHY_MS = 10_000;
// A server may give a different reason each time; all beyond these count as one.
const MOST_REASONS = 10;
const ANY_OTHER = Symbol("any other reason");

/** Rate limit for log lines about a recurring failure: each new reason at once, and hourly while it lasts. */
export class FailureLogLimiter {
  readonly #clock: Pick<Clock, "now">;
  /** When each reason was last logged; epoch ms. */
  readonly #loggedAt = new Map<string | typeof ANY_OTHER, number>();
  #workingSince: number | undefined;
  #owed = false;
  #flaps = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Returns true when the failure should be logged. */
  shouldLogFailure(reason: string): boolean {
    const now = this.#clock.now();
    if (this.#workingSince !== undefined) {
      this.#flaps = now - this.#workingSince < HEALTHY_MS;
      if (!this.#flaps) this.#loggedAt.clear();
      this.#workingSince = undefined;
    }
    const isListed = this.#loggedAt.has(reason) || this.#loggedAt.size < MOST_REASONS;
    const key = isListed ? reason : ANY_OTHER;
    const at = this.#loggedAt.get(key);
    if (at !== undefined && now - at < (this.#flaps ? FLAPPING_AGAIN_MS : LOG_AGAIN_AFTER_MS)) return false;
    this.#loggedAt.set(key, now);
    this.#owed = true;
    return true;
  }

  /** Returns true when a failure was logged since the last success. */
  shouldLogRecovery(): boolean {
    this.#workingSince ??= this.#clock.now();
    const wasOwed = this.#owed;
    this.#owed = false;
    return wasOwed;
  }
}
