import type { Clock } from "./clock.ts";

// Whoever looks at the log of an hour finds what fails.
const SAME_AGAIN_MS = 60 * 60_000;
// Reasons may take turns with each attempt.
const OTHER_AFTER_MS = 60_000;

/** What is worth a line of what fails again and again: that it began, another reason, and after each hour that it lasts. */
export class FailureNews {
  readonly #clock: Pick<Clock, "now">;
  #told: { readonly reason: string; readonly at: number } | undefined;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** It has failed, once more or for the first time; true when that is to be told. */
  failed(reason: string): boolean {
    const now = this.#clock.now();
    const restMs = this.#told?.reason === reason ? SAME_AGAIN_MS : OTHER_AFTER_MS;
    if (this.#told !== undefined && now - this.#told.at < restMs) return false;
    this.#told = { reason, at: now };
    return true;
  }

  /** It works; true when that it did not was told. */
  works(): boolean {
    const wasTold = this.#told !== undefined;
    this.#told = undefined;
    return wasTold;
  }
}
