// Sockets and timers wait this long at most, beyond the longest single piece of work.
const LOOP_TURN_MS = 10;

const waiting: (() => void)[] = [];
let planned = false;

/**
 * Yields to the event loop. Callers resume in order, as many per turn of the loop as fit into `LOOP_TURN_MS`. Keeps timers, such as
 * the Lease renewal, on time while many responses are processed.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (planned) return;
    planned = true;
    setImmediate(goOn);
  });
}

function goOn(): void {
  const until = performance.now() + LOOP_TURN_MS;
  const next = (): void => {
    const resolve = waiting.shift();
    if (resolve === undefined) {
      planned = false;
      return;
    }
    resolve();
    // Runs after the work that `resolve` released.
    queueMicrotask(() => {
      if (performance.now() < until) next();
      else setImmediate(goOn);
    });
  };
  next();
}

// The longest time that the event loop is held.
const SLICE_MS = 10;

/** Splits long synchronous work: the worker asks `due` after each step, and yields with `next`. */
export class TimeSlice {
  readonly #signal: AbortSignal;
  #begunAt = performance.now();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Reports whether the worker has held the event loop long enough to yield. */
  get due(): boolean {
    return performance.now() - this.#begunAt > SLICE_MS;
  }

  /** Yields to the event loop. Rejects with the signal's reason once it has fired. */
  async next(): Promise<void> {
    await yieldToEventLoop();
    this.#signal.throwIfAborted();
    this.#begunAt = performance.now();
  }
}
