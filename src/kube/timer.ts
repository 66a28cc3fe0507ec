// Node.js turns a longer delay into 1 ms, and warns of that and of negative ones.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls `callback` once after `ms`, which may have passed already. A delay of more than 24 days ends early. */
export function startTimer(ms: number, callback: () => void): NodeJS.Timeout {
  return setTimeout(callback, ms > 0 ? Math.min(ms, LONGEST_TIMER_MS) : 0);
}
