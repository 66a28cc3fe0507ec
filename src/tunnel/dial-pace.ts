import type { Clock } from "../runtime/clock.ts";

// A handshake takes hub and agent a millisecond each, of the thread that passes on all other bytes: a burst of 200 would stop
// those for as long. At this pace requests wait for four of them at most.
const AT_ONCE = 4;
const WINDOW_MS = 8;

/**
 * Spreads the dials of a burst; those that come one at a time do not wait. Both ends have one, since messages that arrive while a
 * process waits for a processor come all at once.
 */
export class DialPace {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** Dials of the current window. */
  #sent = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `send` at once, or when its turn comes. */
  take(send: () => void): void {
    if (this.#sent === AT_ONCE) {
      this.#waiting.push(send);
      return;
    }
    if (this.#sent === 0) this.#clock.after(WINDOW_MS, () => this.#nextWindow());
    this.#sent += 1;
    send();
  }

  #nextWindow(): void {
    this.#sent = 0;
    for (const send of this.#waiting.splice(0, AT_ONCE)) this.take(send);
  }
}
