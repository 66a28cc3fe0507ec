import type { Clock } from "./clock.ts";

/** A wait that can be ended early, for a loop that has one at a time. */
export class Pause {
  readonly #clock: Pick<Clock, "sleep">;
  #ending: AbortController | undefined;

  constructor(clock: Pick<Clock, "sleep">) {
    this.#clock = clock;
  }

  /** Resolves after `ms`, when `end` is called or the signal fires: the loop looks which. Never rejects. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    this.#ending = new AbortController();
    try {
      await this.#clock.sleep(ms, AbortSignal.any([signal, this.#ending.signal]));
    } catch {
      // Ended early.
    } finally {
      this.#ending = undefined;
    }
  }

  /** Ends the wait under way; harmless when there is none. */
  end(): void {
    this.#ending?.abort();
  }
}
