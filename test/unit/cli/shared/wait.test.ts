import { expect, test } from "vitest";
import { waitFor } from "../../../../src/cli/shared/wait.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

test("polls until the check finds something", async () => {
  const clock = new FakeClock();
  let looks = 0;
  const found = waitFor(async () => (++looks === 3 ? "it" : undefined), { timeoutMs: 1000, intervalMs: 100, clock });
  await clock.advance(200);
  expect(await found).toBe("it");
  expect(looks).toBe(3);
});

test("checks a last time at the timeout, and gives up", async () => {
  const clock = new FakeClock();
  const times: number[] = [];
  const start = clock.now();
  const found = waitFor(async () => void times.push(clock.now() - start), { timeoutMs: 250, intervalMs: 100, clock });
  await clock.advance(300);
  expect(await found).toBeUndefined();
  expect(times).toEqual([0, 100, 200, 250]);
});

test("rejects at once with the reason of an interruption", async () => {
  const clock = new FakeClock();
  const interruption = new AbortController();
  const found = waitFor(async () => undefined, { timeoutMs: 1000, clock, signal: interruption.signal });
  const settled = expect(found).rejects.toThrow("stop it");
  await clock.advance(10);
  interruption.abort(new Error("stop it"));
  await settled;
});
