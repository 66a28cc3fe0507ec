import type { Clock } from "./clock.ts";

/** A sleep that can be ended early. One at a time. */
export class Pause {
  readonly #clock: Pick<Clock, "sleep">;
  #ending: AbortController | undefined;

  constructor(clock: Pick<Clock, "sleep">) {
    this.#clock = clock;
  }

  /** Resolves after `ms`, on `end`, or when the signal fires. Never rejects. */
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

  /** Ends the current wait, if there is one. */
  end(): void {
    this.#ending?.abort();
  }
}
