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
