/**
 * Abort callbacks of requests that share a signal. An EventTarget scans all its listeners to add or remove one, which costs
 * more than the requests when thousands share a controller's signal.
 */
export class AbortCallbacks {
  readonly #bySignal = new WeakMap<AbortSignal, Set<() => void>>();

  /** Calls `callback` when the signal aborts. The returned function removes it. Ignores a signal that has aborted already. */
  add(signal: AbortSignal | undefined, callback: () => void): () => void {
    if (signal === undefined || signal.aborted) return () => undefined;
    let callbacks = this.#bySignal.get(signal);
    if (callbacks === undefined) {
      const made = new Set<() => void>();
      callbacks = made;
      this.#bySignal.set(signal, made);
      const callAll = (): void => {
        for (const one of [...made]) one();
      };
      signal.addEventListener("abort", callAll, { once: true });
    }
    const kept = callbacks;
    kept.add(callback);
    return () => kept.delete(callback);
  }
}

/** Settles as `answer` does, or rejects with `reason()` as soon as the signal fires. Does not cancel `answer`. */
export async function unlessAborted<T>(
  answer: Promise<T>,
  signal: AbortSignal,
  reason: () => unknown = () => signal.reason,
): Promise<T> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(reason());
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([aborted, answer]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
