import type { Clock } from "../runtime/clock.ts";

// A handshake takes hub and agent a millisecond each, of the thread that passes on all other bytes: a burst of 200 would stop
// those for as long.
const INTERVAL_MS = 4;

/**
 * Spreads the dials of a burst; those that come one at a time do not wait. Both ends have one, since messages that arrive while a
 * process waits for a processor come all at once.
 */
export class DialPace {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** Set when the last dial was less than an interval ago. */
  #busy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `send` at once, or when its turn comes. */
  take(send: () => void): void {
    if (this.#busy) {
      this.#waiting.push(send);
      return;
    }
    this.#busy = true;
    this.#clock.after(INTERVAL_MS, () => this.#next());
    send();
  }

  #next(): void {
    this.#busy = false;
    const send = this.#waiting.shift();
    if (send !== undefined) this.take(send);
  }
}
