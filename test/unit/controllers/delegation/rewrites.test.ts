import { expect, test } from "vitest";
import { Rewrites } from "../../../../src/controllers/delegation/rewrites.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

test("the fifth write for the same within a minute was undone too often, and each one after it", () => {
  const rewrites = new Rewrites(new FakeClock());
  expect([1, 2, 3, 4, 5, 6].map(() => rewrites.note("p", "a"))).toEqual([false, false, false, false, true, true]);
  expect(rewrites.note("q", "a")).toBe(false);
});

test("what is written for something else between starts anew", () => {
  const rewrites = new Rewrites(new FakeClock());
  expect(["a", "a", "a", "a", "b", "a", "a", "a", "a"].some((wanted) => rewrites.note("p", wanted))).toBe(false);
  expect(rewrites.note("p", "a")).toBe(true);
});

test("nothing is kept in mind for longer than a minute after it was last written", async () => {
  const clock = new FakeClock();
  const rewrites = new Rewrites(clock);
  for (let pod = 0; pod < 100; pod += 1) rewrites.note(`p${pod}`, "a");
  await clock.advance(30_000);
  rewrites.note("p0", "a");
  await clock.advance(30_000);
  rewrites.note("other", "a");
  expect(rewrites.size).toBe(2);
});
