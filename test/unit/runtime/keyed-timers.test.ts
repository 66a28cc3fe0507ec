import { beforeEach, expect, test } from "vitest";
import { KeyedTimers } from "../../../src/runtime/keyed-timers.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

let clock: FakeClock;
let timers: KeyedTimers<string>;
let fired: string[];
beforeEach(() => {
  clock = new FakeClock();
  timers = new KeyedTimers(clock);
  fired = [];
});

const fire = (what: string) => (): void => void fired.push(what);

test("fires the timer of each key once, and forgets it", async () => {
  timers.start("a", 1_000, fire("a"));
  timers.start("b", 2_000, fire("b"));
  expect(timers.size).toBe(2);
  await clock.advance(1_000);
  expect(fired).toEqual(["a"]);
  expect([timers.has("a"), timers.has("b")]).toEqual([false, true]);
  await clock.advance(10_000);
  expect(fired).toEqual(["a", "b"]);
  expect(timers.size).toBe(0);
});

test("keeps the pending timer of a key that is started again, sooner or later", async () => {
  timers.start("a", 1_000, fire("first"));
  timers.start("a", 100, fire("second"));
  timers.start("a", 5_000, fire("third"));
  await clock.advance(999);
  expect(fired).toEqual([]);
  await clock.advance(10_000);
  expect(fired).toEqual(["first"]);
  timers.start("a", 100, fire("fourth"));
  await clock.advance(100);
  expect(fired).toEqual(["first", "fourth"]);
});

test.each([100, 5_000])("replaces the pending timer of a key that is restarted for %i ms", async (ms) => {
  timers.start("a", 1_000, fire("first"));
  timers.restart("a", ms, fire("second"));
  await clock.advance(ms - 1);
  expect(fired).toEqual([]);
  await clock.advance(10_000);
  expect(fired).toEqual(["second"]);
});

test("cancels the timer of a key alone", async () => {
  timers.start("a", 1_000, fire("a"));
  timers.start("b", 1_000, fire("b"));
  timers.cancel("a");
  timers.cancel("unknown");
  await clock.advance(10_000);
  expect(fired).toEqual(["b"]);
});

test("lets a callback start the timer of its key anew", async () => {
  timers.start("a", 1_000, () => {
    fired.push("first");
    timers.start("a", 1_000, fire("again"));
  });
  await clock.advance(2_000);
  expect(fired).toEqual(["first", "again"]);
});

test("stops all timers, and starts none afterwards", async () => {
  timers.start("a", 1_000, fire("a"));
  timers.stop();
  timers.start("b", 1_000, fire("b"));
  timers.restart("c", 1_000, fire("c"));
  expect([timers.size, clock.pending]).toEqual([0, 0]);
  await clock.advance(10_000);
  expect(fired).toEqual([]);
});

test.each([-3_600_000, 3_600_000])("fires in time when the machine's clock jumps by %i ms", async (jumpMs) => {
  timers.start("a", 1_000, fire("a"));
  clock.jump(jumpMs);
  await clock.advance(999);
  expect(fired).toEqual([]);
  await clock.advance(1);
  expect(fired).toEqual(["a"]);
});
