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
 * What was refused for an object, for a while: by whom, or of what it asked, and why. Objects are known by uid, so that one
 * that takes another's name begins anew.
 */
export class Refusals {
  readonly #options: RefusalsOptions;
  readonly #byUid = new Map<string, Map<string, Refusal>>();

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  /** Keeps a refusal, in the place of an earlier one of the same; `onForgotten` says when it may be tried again. */
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

  /** Why it was refused; undefined when it was not, or long ago. */
  of(uid: string, what: string): string | undefined {
    return this.#byUid.get(uid)?.get(what)?.message;
  }

  stop(): void {
    for (const refused of this.#byUid.values()) for (const { timer } of refused.values()) timer.cancel();
    this.#byUid.clear();
  }
}
