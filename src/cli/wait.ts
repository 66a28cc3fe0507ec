import { type Clock, realClock } from "../runtime/clock.ts";

/** How long to wait for something, and how often to look. */
export interface WaitOptions {
  readonly timeoutMs: number;
  readonly intervalMs?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Looks until `check` finds something; undefined when the time is over. A rejected check ends the wait.
 * An interruption rejects with the signal's reason.
 */
export async function waitFor<T>(
  check: () => Promise<T | undefined>,
  { timeoutMs, intervalMs = 250, signal, clock = realClock }: WaitOptions,
): Promise<T | undefined> {
  const end = clock.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const found = await check();
    if (found !== undefined) return found;
    const left = end - clock.now();
    if (left <= 0) return undefined;
    await clock.sleep(Math.min(intervalMs, left), signal);
  }
}
