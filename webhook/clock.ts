import { startTimer } from "../src/kube/timer.ts";

export interface WebhookClock {
  /** Milliseconds since the epoch by the machine's clock, which may jump. */
  wall(): number;
  /** Monotonic milliseconds, for durations. */
  now(): number;
  /** Calls `callback` once after `ms`. */
  after(ms: number, callback: () => void): { cancel(): void };
}

/** The machine's clock. Timers do not keep the process alive. */
export const systemClock: WebhookClock = {
  wall: () => Date.now(),
  now: () => performance.now(),
  after: (ms, callback) => {
    const timer = startTimer(ms, callback).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
