import type { Clock, Timer } from "../../runtime/clock.ts";

interface Refusal {
  readonly message: string;
  readonly timer: Timer;
}

export interface RefusalsOptions {
  readonly clock: Clock;
  readonly forMs: number;
}

/**
 * Refusals of the last while, by uid of the object, so that a new object of the same name starts without any, and by what was
 * refused.
 */
export class Refusals {
  readonly #options: RefusalsOptions;
  readonly #byUid = new Map<string, Map<string, Refusal>>();

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  /** Keeps a refusal in place of an earlier one, and calls `onForgotten` when it may be tried again. */
  note(uid: string, what: string, message: string, onForgotten: () => void): void {
    const { clock, forMs } = this.#options;
    const refused = this.#byUid.get(uid) ?? new Map<string, Refusal>();
    refused.get(what)?.timer.cancel();
    const timer = clock.after(forMs, () => {
      refused.delete(what);
      if (refused.size === 0) this.#byUid.delete(uid);
      onForgotten();
    });
    this.#byUid.set(uid, refused.set(what, { message, timer }));
  }

  /** Returns why it was refused; undefined if it was not, or long ago. */
  of(uid: string, what: string): string | undefined {
    return this.#byUid.get(uid)?.get(what)?.message;
  }

  stop(): void {
    for (const refused of this.#byUid.values()) for (const { timer } of refused.values()) timer.cancel();
    this.#byUid.clear();
  }
}
