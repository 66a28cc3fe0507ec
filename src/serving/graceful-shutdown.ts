import type { Clock } from "../runtime/clock.ts";

// An API server without a request for this long counts as idle.
const QUIET_MS = 500;
// Bounds the wait for clients that keep sending.
const LONGEST_DRAIN_MS = 5_000;
const CHECK_DRAIN_MS = 50;

/**
 * The graceful shutdown of a server that API servers call. They do not repeat requests of closed connections, so each answer
 * first asks for the end of its connection. Connections are closed only when no request comes any more.
 */
export class GracefulShutdown {
  readonly #clock: Pick<Clock, "now" | "after">;
  #lastRequestAt = Number.NEGATIVE_INFINITY;
  #leaving = false;

  constructor(clock: Pick<Clock, "now" | "after">) {
    this.#clock = clock;
  }

  /** Answers ask clients to close their connection. */
  get leaving(): boolean {
    return this.#leaving;
  }

  requested(): void {
    this.#lastRequestAt = this.#clock.now();
  }

  /** Starts the shutdown. Resolves when connections may be closed. */
  begin(): Promise<void> {
    this.#leaving = true;
    const begunAt = this.#clock.now();
    return new Promise((resolve) => {
      const check = (): void => {
        const now = this.#clock.now();
        if (now - this.#lastRequestAt >= QUIET_MS || now - begunAt >= LONGEST_DRAIN_MS) resolve();
        else this.#clock.after(CHECK_DRAIN_MS, check);
      };
      check();
    });
  }
}
