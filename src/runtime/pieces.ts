import { turn } from "../kube/turn.ts";

// The longest time that the event loop is held.
const PIECE_MS = 10;

/** Splits long synchronous work: the worker asks `due` after each step, and yields with `next`. */
export class Pieces {
  readonly #signal: AbortSignal;
  #begunAt = performance.now();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Reports whether the worker has held the event loop long enough to yield. */
  get due(): boolean {
    return performance.now() - this.#begunAt > PIECE_MS;
  }

  /** Yields to the event loop. Rejects with the signal's reason once it has fired. */
  async next(): Promise<void> {
    await turn();
    this.#signal.throwIfAborted();
    this.#begunAt = performance.now();
  }
}
