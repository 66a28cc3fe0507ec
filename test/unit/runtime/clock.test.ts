import { describe, expect, test } from "vitest";
import { type Clock, realClock } from "../../../src/runtime/clock.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const clocks: readonly [string, () => { clock: Clock; pass: (ms: number) => Promise<void> }][] = [
  ["the real clock", () => ({ clock: realClock, pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) })],
  [
    "the fake clock",
    () => {
      const clock = new FakeClock();
      return { clock, pass: (ms) => clock.advance(ms) };
    },
  ],
];

describe.each(clocks)("%s", (_name, make) => {
  test("wakes a sleeper after its time, not before", async () => {
    const { clock, pass } = make();
    let awake = false;
    const sleeping = clock.sleep(40).then(() => {
      awake = true;
    });
    await pass(5);
    expect(awake).toBe(false);
    await pass(60);
    await sleeping;
    expect(awake).toBe(true);
  });

  test("wakes a sleeper with the signal's reason", async () => {
    const { clock } = make();
    const abort = new AbortController();
    const sleeping = clock.sleep(60_000, abort.signal);
    abort.abort(new Error("enough"));
    await expect(sleeping).rejects.toThrow("enough");
    await expect(clock.sleep(1, abort.signal)).rejects.toThrow("enough");
  });

  test("does not call a cancelled timer", async () => {
    const { clock, pass } = make();
    const called: string[] = [];
    clock.after(10, () => called.push("off")).cancel();
    clock.after(10, () => called.push("on"));
    await pass(50);
    expect(called).toEqual(["on"]);
  });
});
