import { unlessAborted } from "../kube/abort.ts";

/** A mutex; callers get it in the order in which they ask. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();

  /** Acts while no other caller does. Rejects with the signal's reason. */
  async run<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
    const unlock = await this.lock(signal);
    return act().finally(unlock);
  }

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
