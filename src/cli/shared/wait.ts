import { isKubeError } from "../../kube/errors.ts";
import { type Clock, realClock } from "../../runtime/clock.ts";

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly intervalMs?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/** Polls until `check` finds something. Undefined on timeout. Rejects with an error of `check`, or the signal's reason. */
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

/** Polls like `waitFor` until a condition holds. Resolves to false on timeout. */
export async function until(
  condition: (leftMs: () => number) => Promise<boolean>,
  options: WaitOptions,
): Promise<boolean> {
  return (await waitFor(async (leftMs) => (await condition(leftMs)) || undefined, options)) ?? false;
}

export function withoutRepeats(report: (line: string) => void): (line: string) => void {
  let last: string | undefined;
  return (line) => {
    if (line !== last) report(line);
    last = line;
  };
}

// A new binding takes a moment to reach the authorizer's cache.
const NEW_RIGHTS_ATTEMPTS = 20;
const NEW_RIGHTS_RETRY_MS = 250;

/** Repeats a request whose rights are new while they are refused. Rejects with the last error. */
export async function withNewRights(request: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await request();
      return;
    } catch (error) {
      if (!isKubeError(error, "Forbidden", "Unauthorized") || attempt === NEW_RIGHTS_ATTEMPTS) throw error;
      await realClock.sleep(NEW_RIGHTS_RETRY_MS, signal);
    }
  }
}
