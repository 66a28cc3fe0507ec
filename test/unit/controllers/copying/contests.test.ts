import { beforeEach, expect, test } from "vitest";
import { Contests } from "../../../../src/controllers/copying/contests.ts";
import { copyKey } from "../../../../src/controllers/dependencies/model.ts";
import { dependencyKey } from "../../../../src/pods/dependencies.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const key = copyKey("west", dependencyKey({ kind: "ServiceAccount", namespace: "team", name: "default" }));

let clock: FakeClock;
let contests: Contests<typeof key>;
beforeEach(() => {
  clock = new FakeClock();
  contests = new Contests(clock);
});

test("a copy that somebody else keeps changing is left to them for ten minutes, and said so once", async () => {
  expect([1, 2, 3, 4].map(() => contests.note(key, "7"))).toEqual([false, false, false, false]);
  expect(contests.until(key, "7")).toBeUndefined();
  expect(contests.note(key, "7")).toBe(true);
  expect(contests.until(key, "7")).toBe(clock.now() + 600_000);
  await clock.advance(600_000);
  expect(contests.until(key, "7")).toBeUndefined();
  expect(contests.note(key, "7")).toBe(false);
});

test("a source that has changed is copied at once", () => {
  for (let write = 0; write < 5; write += 1) contests.note(key, "7");
  expect(contests.until(key, "8")).toBeUndefined();
  expect(contests.note(key, "8")).toBe(false);
  expect(contests.until(key, "8")).toBeUndefined();
});

test("changes that are made now and then are mended each time", async () => {
  for (let write = 0; write < 20; write += 1) {
    expect(contests.note(key, "7")).toBe(false);
    await clock.advance(15_001);
  }
  expect(contests.until(key, "7")).toBeUndefined();
});
