import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

/** Deadline of the wait. */
export interface EventuallyOptions {
  /** Default 30 s. */
  readonly timeoutMs?: number;
  /** Pause between two attempts, or twice as long as an attempt takes; default 100 ms. */
  readonly intervalMs?: number;
  /** The awaited condition, for the failure's message. */
  readonly what?: string;
}

/** Anything but void: a callback without a result belongs in `eventuallyPasses`. */
type Result = NonNullable<unknown> | null | undefined;

/**
 * Calls `attempt` until it returns a value other than false, null or undefined without throwing. Rejects at the
 * deadline with the last error or value.
 */
export async function eventually<T extends Result>(
  attempt: () => T | Promise<T>,
  options: EventuallyOptions = {},
): Promise<Exclude<T, false | null | undefined>> {
  const { timeoutMs = 60_000, intervalMs = 100, what = "the condition" } = options;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let last: string;
    let cause: unknown;
    const askedAt = performance.now();
    try {
      const value = await attempt();
      if (isThere(value)) return value;
      last = `last value: ${inspect(value)}`;
    } catch (error) {
      cause = error;
      last = `last error: ${error instanceof Error ? error.message : inspect(error)}`;
    }
    if (performance.now() > deadline) {
      throw new Error(`${what} did not hold within ${timeoutMs} ms; ${last}`, { cause });
    }
    // Asking may itself be work, a kubectl say: it must not take the machine from what it waits for.
    await sleep(Math.max(intervalMs, 2 * (performance.now() - askedAt)));
  }
}

/** Calls `assertions` until they pass; when time is up it rejects with the last failure. */
export async function eventuallyPasses(
  assertions: () => void | Promise<void>,
  options: EventuallyOptions = {},
): Promise<void> {
  await eventually(async () => {
    await assertions();
    return true;
  }, options);
}

function isThere<T>(value: T): value is Exclude<T, false | null | undefined> {
  return value !== false && value !== null && value !== undefined;
}
