import type { Clock } from "../runtime/clock.ts";

// A handshake takes hub and agent a millisecond each, of the thread that passes on all other bytes: a burst of 200 would stop
// those for as long.
const DIAL_INTERVAL_MS = 4;

/**
 * Spreads the dials of a burst; those that come one at a time do not wait. Both ends have one, since messages that arrive while a
 * process waits for a processor come all at once.
 */
export class DialPace {
  readonly #clock: Clock;
  readonly #waiting: { readonly send: () => void; readonly isWanted: () => boolean }[] = [];
  /** Set when the last dial was less than an interval ago. */
  #busy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `send` at once, or when its turn comes. A dial that is not wanted any more takes no turn. */
  take(send: () => void, isWanted: () => boolean): void {
    if (this.#busy) {
      this.#waiting.push({ send, isWanted });
      return;
    }
    this.#busy = true;
    this.#clock.after(DIAL_INTERVAL_MS, () => this.#next());
    send();
  }

  #next(): void {
    this.#busy = false;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (!next.isWanted()) continue;
      this.take(next.send, next.isWanted);
      return;
    }
  }
}
