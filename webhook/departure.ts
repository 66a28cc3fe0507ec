import type { WebhookClock } from "./clock.ts";

// An API server that sends reviews sends the next one within this time, or it is as good as idle.
const QUIET_MS = 500;
// Whoever keeps sending over a connection that was asked to end, or opens new ones, is not waited for any longer.
const LONGEST_MS = 5_000;
const LOOK_MS = 50;

/**
 * A webhook's way out. API servers do not repeat a review whose connection was closed while they sent it, and keep
 * connections for minutes: so each answer asks for the end of its connection first, and new ones are made to replicas that
 * stay. Only when no review comes any more, connections are closed from this side.
 */
export class Departure {
  readonly #clock: WebhookClock;
  #lastReviewAt = Number.NEGATIVE_INFINITY;
  #leaving = false;

  constructor(clock: WebhookClock) {
    this.#clock = clock;
  }

  /** Answers ask for the end of their connection, and nobody should open another. */
  get leaving(): boolean {
    return this.#leaving;
  }

  reviewed(): void {
    this.#lastReviewAt = this.#clock.now();
  }

  /** Begins to leave; resolves when connections may be closed. */
  begin(): Promise<void> {
    this.#leaving = true;
    const begunAt = this.#clock.now();
    return new Promise((resolve) => {
      const look = (): void => {
        const now = this.#clock.now();
        if (now - this.#lastReviewAt >= QUIET_MS || now - begunAt >= LONGEST_MS) resolve();
        else this.#clock.after(LOOK_MS, look);
      };
      look();
    });
  }
}
