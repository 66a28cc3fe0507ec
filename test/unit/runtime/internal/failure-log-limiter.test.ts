import { expect, test } from "vitest";
import { FailureLogLimiter } from "../../../../src/runtime/internal/failure-log-limiter.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

test("logs a flapping connection every five minutes, in both directions", () => {
  const clock = { at: 0, now: () => clock.at };
  const limiter = new FailureLogLimiter(clock);
  let failures = 0;
  let recoveries = 0;
  for (; clock.at < 20 * MINUTE; clock.at += SECOND) {
    if (limiter.shouldLogFailure("reset")) failures += 1;
    clock.at += 4 * SECOND;
    if (limiter.shouldLogRecovery()) recoveries += 1;
  }
  expect({ failures, recoveries }).toEqual({ failures: 4, recoveries: 4 });
});

test("logs a failure after a healthy while at once, and then hourly", () => {
  const clock = { at: 0, now: () => clock.at };
  const limiter = new FailureLogLimiter(clock);
  expect(limiter.shouldLogFailure("reset")).toBe(true);
  expect(limiter.shouldLogRecovery()).toBe(true);
  clock.at += 10 * SECOND;
  expect(limiter.shouldLogFailure("reset")).toBe(true);
  clock.at += 59 * MINUTE;
  expect(limiter.shouldLogFailure("reset")).toBe(false);
  clock.at += MINUTE;
  expect(limiter.shouldLogFailure("reset")).toBe(true);
  expect([limiter.shouldLogRecovery(), limiter.shouldLogRecovery()]).toEqual([true, false]);
});
