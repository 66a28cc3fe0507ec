/** Time, as far as the webhook needs it: tests put a fake in its place. */
export interface WebhookClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `callback` once after `ms`. */
  after(ms: number, callback: () => void): { cancel(): void };
}

/** The machine's own clock; its timers do not keep the process alive. */
export const systemClock: WebhookClock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
