import type { Clock, Timer } from "./clock.ts";

// Whoever has slept looks at the time this soon afterwards.
const LOOK_MS = 30_000;
// Time synchronisation moves a clock on by less in that while.
const STEP_MS = 5_000;

/**
 * Calls back, until cancelled, soon after the machine's time has gone on without this process's: the machine was suspended, or
 * somebody set its clock. Timers that wait by then come late by as much as the machine was suspended.
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
