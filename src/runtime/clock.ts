/** A timer that can be called off; calling it off twice is harmless. */
export interface Timer {
  cancel(): void;
}

/** Time, as everything in Legation sees it: tests put a fake in its place. */
export interface Clock {
  /**
   * Milliseconds since the epoch as this process counts them: from the machine's time at its start, at an even pace, whatever
   * somebody does to that since. For durations, and for everything that is decided.
   */
  now(): number;
  /** Milliseconds since the epoch as the machine says, which may jump: for what others write or read, and never for durations. */
  wall(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it fires first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once after `ms`. A pending timer does not keep the process alive. */
  after(ms: number, callback: () => void): Timer;
}

// Node turns a longer delay into 1 ms.
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The machine's own clock. */
export const realClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  wall: () => Date.now(),
  sleep: sleepWith((ms, callback) => {
    const timer = setTimeout(callback, Math.min(ms, LONGEST_TIMEOUT_MS));
    return { cancel: () => clearTimeout(timer) };
  }),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(ms, LONGEST_TIMEOUT_MS)).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** `Clock.sleep` made of a clock's timers. */
export function sleepWith(after: Clock["after"]): Clock["sleep"] {
  return (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const onAbort = (): void => {
        timer.cancel();
        reject(signal?.reason);
      };
      const timer = after(ms, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
}
