/** Time, as far as the webhook needs it: tests put a fake in its place. */
export interface WebhookClock {
  /** Milliseconds since the epoch, as the machine says, which may jump. */
  wall(): number;
  /** Milliseconds of a clock that nobody sets: for durations. */
  now(): number;
  /** Calls `callback` once after `ms`. */
  after(ms: number, callback: () => void): { cancel(): void };
}

/** The machine's own clock; its timers do not keep the process alive. */
export const systemClock: WebhookClock = {
  wall: () => Date.now(),
  now: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
