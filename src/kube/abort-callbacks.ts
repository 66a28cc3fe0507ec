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
