import { expect, test, vi } from "vitest";
import { startTimer } from "../../../src/kube/timer.ts";
import { realClock } from "../../../src/runtime/clock.ts";

const DAY_MS = 24 * 60 * 60_000;

test.each<[string, (ms: number) => { cancel(): void }]>([
  [
    "a timer of the API client",
    (ms) => {
      const timer = startTimer(ms, () => {});
      return { cancel: () => clearTimeout(timer) };
    },
  ],
  ["the clock of controller and webhook", (ms) => realClock.after(ms, () => {})],
])("%s gives Node.js no delay that it warns of: neither one that has passed nor more than 24 days", (_, start) => {
  const started = vi.spyOn(globalThis, "setTimeout");
  try {
    for (const ms of [-0.5, -3 * DAY_MS, Number.NEGATIVE_INFINITY, Number.NaN, 5, 30 * DAY_MS]) start(ms).cancel();
    expect(started.mock.calls.map(([, ms]) => ms)).toEqual([0, 0, 0, 0, 5, 2 ** 31 - 1]);
  } finally {
    started.mockRestore();
  }
});

test("a sleep until a moment that has passed ends at once", async () => {
  await expect(realClock.sleep(-1_000)).resolves.toBeUndefined();
});
