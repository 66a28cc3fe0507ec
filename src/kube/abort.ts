const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `callback` when the signal aborts. The returned function removes it. Ignores a signal that has aborted already. An
 * EventTarget scans all its listeners to add or remove one, which costs more than the requests when thousands share a
 * controller's signal.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined || signal.aborted) return () => undefined;
  const callbacks = callbacksOf.get(signal) ?? new Set();
  if (!callbacksOf.has(signal)) {
    callbacksOf.set(signal, callbacks);
    const callAll = (): void => {
      for (const one of [...callbacks]) one();
    };
    signal.addEventListener("abort", callAll, { once: true });
  }
  callbacks.add(callback);
  return () => callbacks.delete(callback);
}

/** Settles as `answer` does, or rejects with `reason()` as soon as the signal fires. Does not cancel `answer`. */
export async function unlessAborted<T>(
  answer: Promise<T>,
  signal: AbortSignal,
  reason: () => unknown = () => signal.reason,
): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const giveUp = (): void => aborted.reject(reason());
  if (signal.aborted) giveUp();
  else signal.addEventListener("abort", giveUp, { once: true });
  try {
    return await Promise.race([aborted.promise, answer]);
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}
