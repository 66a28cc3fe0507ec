import type { Clock, Timer } from "./clock.ts";

// How often the two clocks are compared, and so how soon a step is noticed.
const LOOK_MS = 30_000;
// Time synchronisation slews a clock by less than this between two comparisons.
const STEP_MS = 5_000;

/**
 * Calls `callback` soon after the machine's clock has jumped ahead of this process's monotonic one: the machine was
 * suspended, or an administrator set its clock. Timers that were pending during a suspend fire late by its length.
 */
export function onClockStep(clock: Clock, callback: () => void): Timer {
  const ahead = (): number => clock.wall() - clock.now();
  let before = ahead();
  let timer: Timer;
  const look = (): void => {
    const step = ahead() - before;
    before += step;
    timer = clock.after(LOOK_MS, look);
    if (step >= STEP_MS) callback();
  };
  timer = clock.after(LOOK_MS, look);
  return { cancel: () => timer.cancel() };
}
