import { turn } from "../kube/turn.ts";

// Other work of the process waits no longer than this.
const PIECE_MS = 10;

/** Long work in pieces: whoever does it looks after each step whether the others are to have their turn. */
export class Pieces {
  readonly #signal: AbortSignal;
  #begunAt = performance.now();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** A piece has been done. */
  get due(): boolean {
    return performance.now() - this.#begunAt > PIECE_MS;
  }

  /** Lets the others do theirs. Rejects with the signal's reason once it has fired. */
  async next(): Promise<void> {
    await turn();
    this.#signal.throwIfAborted();
    this.#begunAt = performance.now();
  }
}
