import { type Clock, realClock } from "../runtime/clock.ts";

/** How long to wait for something, and how often to look. */
export interface WaitOptions {
  readonly timeoutMs: number;
  readonly intervalMs?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Looks until `check` finds something; undefined when the time is over. A rejected check ends the wait; one that takes
 * long asks how much time is left.
 * An interruption rejects with the signal's reason.
 */
export async function waitFor<T>(
  check: (leftMs: () => number) => Promise<T | undefined>,
  { timeoutMs, intervalMs = 250, signal, clock = realClock }: WaitOptions,
): Promise<T | undefined> {
  const end = clock.now() + timeoutMs;
  const leftMs = (): number => end - clock.now();
  for (;;) {
    signal?.throwIfAborted();
    const found = await check(leftMs);
    if (found !== undefined) return found;
    const left = leftMs();
    if (left <= 0) return undefined;
    await clock.sleep(Math.min(intervalMs, left), signal);
  }
}
