import { startTimer } from "../kube/timer.ts";

/** A timer that can be cancelled; a second cancel does nothing. */
export interface Timer {
  cancel(): void;
}

/** The source of time for all code. Tests replace it with a fake. */
export interface Clock {
  /** Monotonic milliseconds since the epoch. Never jumps. Durations and decisions use it. */
  now(): number;
  /** Milliseconds since the epoch. May jump: only for timestamps that others write or read. */
  wall(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it fires first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once after `ms`. A pending timer does not keep the process alive. */
  after(ms: number, callback: () => void): Timer;
}

export const realClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  wall: () => Date.now(),
  sleep: sleepWith((ms, callback) => {
    const timer = startTimer(ms, callback);
    return { cancel: () => clearTimeout(timer) };
  }),
  after: (ms, callback) => {
    const timer = startTimer(ms, callback).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

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

/** A sleep that can be ended early. One at a time. */
export class InterruptibleSleep {
  readonly #clock: Pick<Clock, "sleep">;
  #ending: AbortController | undefined;

  constructor(clock: Pick<Clock, "sleep">) {
    this.#clock = clock;
  }

  /** Resolves after `ms`, on `end`, or when the signal fires. Never rejects. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    this.#ending = new AbortController();
    try {
      await this.#clock.sleep(ms, AbortSignal.any([signal, this.#ending.signal]));
    } catch {
    } finally {
      this.#ending = undefined;
    }
  }

  end(): void {
    this.#ending?.abort();
  }
}

/** Calls `look` every `ms` for as long as it returns true. */
export function every(clock: Pick<Clock, "after">, ms: number, look: () => boolean): Timer {
  let timer: Timer;
  const wait = (): void => {
    timer = clock.after(ms, () => {
      if (look()) wait();
    });
  };
  wait();
  return { cancel: () => timer.cancel() };
}

// Interval between two comparisons of the clocks.
const COMPARE_CLOCKS_MS = 30_000;
// Time synchronisation slews a clock by less than this between two comparisons.
const STEP_MS = 5_000;

/** Calls back after the machine was suspended, or its clock set on or back: timers that were pending fire late. */
export function onClockStep(clock: Clock, callback: () => void): Timer {
  const ahead = (): number => clock.wall() - clock.now();
  let before = ahead();
  return every(clock, COMPARE_CLOCKS_MS, () => {
    const step = ahead() - before;
    before += step;
    if (Math.abs(step) >= STEP_MS) callback();
    return true;
  });
}
