import { unlessAborted } from "../kube/abort.ts";

/** A mutex; callers get it in the order in which they ask. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();

  /** Resolves with the function that unlocks. Rejects with the signal's reason. */
  async lock(signal: AbortSignal): Promise<() => void> {
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
