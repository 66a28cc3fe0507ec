/** Lets one at a time do something, in the order in which they came. */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when it is the caller's turn, with what ends it. */
  async take(): Promise<() => void> {
    const before = this.#last;
    const turn = Promise.withResolvers<void>();
    this.#last = turn.promise;
    await before;
    return turn.resolve;
  }
}
