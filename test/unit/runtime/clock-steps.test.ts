import { expect, test } from "vitest";
import { onClockStep } from "../../../src/runtime/clock.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const MINUTE = 60_000;

test.each([
  ["goes on by an hour", 60 * MINUTE, 1],
  ["is corrected by a second", 1_000, 0],
  ["is set back by an hour", -60 * MINUTE, 1],
])("when the machine's time %s (%d ms), calls back %d times", async (_, ms, times) => {
  const clock = new FakeClock();
  let told = 0;
  const steps = onClockStep(clock, () => {
    told += 1;
  });
  await clock.advance(5 * MINUTE);
  clock.jump(ms);
  await clock.advance(5 * MINUTE);
  expect(told).toBe(times);

  steps.cancel();
  expect(clock.pending).toBe(0);
});
