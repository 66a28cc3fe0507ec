import { expect, test } from "vitest";
import type { Wanted } from "../../../../src/controllers/delegation/decisions/purpose.ts";
import { Rewrites } from "../../../../src/controllers/delegation/rewrites.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const A = { pod: "a" };

test("the fifth write for the same within a minute was undone too often, and each one after it", () => {
  const rewrites = new Rewrites(new FakeClock());
  expect([1, 2, 3, 4, 5, 6].map(() => rewrites.note("p", A))).toEqual([false, false, false, false, true, true]);
  expect(rewrites.note("q", A)).toBe(false);
});

test("what is written for something else between starts anew", () => {
  const rewrites = new Rewrites(new FakeClock());
  expect(["a", "a", "a", "a", "b", "a", "a", "a", "a"].some((wanted) => rewrites.note("p", { pod: wanted }))).toBe(
    false,
  );
  expect(rewrites.note("p", A)).toBe(true);
});

test.each<[string, readonly Wanted[], boolean]>([
  ["a part that is wanted otherwise between starts what it is part of anew", [{ a: "0", b: "0" }, { a: "1" }], false],
  ["so does a write of more", [{ a: "0" }, { a: "1", b: "1" }], false],
  ["what is undone in parts counts", [{ a: "0", b: "0" }, { a: "0" }], true],
  ["what is undone beside something else counts", [{ a: "0" }, { b: "0" }], true],
])("%s", (_what, writes, tooOften) => {
  const rewrites = new Rewrites(new FakeClock());
  const told = Array.from({ length: 10 }, () => writes.map((wanted) => rewrites.note("p", wanted)));
  expect(told.flat().some((undone) => undone)).toBe(tooOften);
});

test("nothing is kept in mind for longer than a minute after it was last written", async () => {
  const clock = new FakeClock();
  const rewrites = new Rewrites(clock);
  for (let pod = 0; pod < 100; pod += 1) rewrites.note(`p${pod}`, A);
  await clock.advance(30_000);
  rewrites.note("p0", A);
  await clock.advance(30_000);
  rewrites.note("other", A);
  expect(rewrites.size).toBe(2);
});
