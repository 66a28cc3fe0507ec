import { unlessAborted } from "../runtime/unless-aborted.ts";

/** Lets one at a time do something, in the order in which they came. */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when it is the caller's turn, with what ends it. Rejects when the signal fires before: the turn passes on. */
  async take(signal: AbortSignal): Promise<() => void> {
    const before = this.#last;
    const turn = Promise.withResolvers<void>();
    this.#last = turn.promise;
    try {
      await unlessAborted(before, signal);
    } catch (error) {
      void before.then(turn.resolve);
      throw error;
    }
    return turn.resolve;
  }
}
