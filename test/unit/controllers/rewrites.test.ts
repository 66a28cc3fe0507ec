import { expect, test } from "vitest";
import { Rewrites, type Wanted } from "../../../src/controllers/rewrites.ts";

const A = { pod: "a" };

test("the fifth write for the same within a minute was undone too often, and each one after it", () => {
  const rewrites = new Rewrites();
  expect([1, 2, 3, 4, 5, 6].map(() => rewrites.note("p", A, 0))).toEqual([false, false, false, false, true, true]);
  expect(rewrites.note("q", A, 0)).toBe(false);
});

test("a write for another purpose in between starts a new count", () => {
  const rewrites = new Rewrites();
  expect(["a", "a", "a", "a", "b", "a", "a", "a", "a"].some((wanted) => rewrites.note("p", { pod: wanted }, 0))).toBe(
    false,
  );
  expect(rewrites.note("p", A, 0)).toBe(true);
});

test.each<[string, readonly Wanted[], boolean]>([
  ["a part that is wanted otherwise between starts what it is part of anew", [{ a: "0", b: "0" }, { a: "1" }], false],
  ["so does a write of more", [{ a: "0" }, { a: "1", b: "1" }], false],
  ["what is undone in parts counts", [{ a: "0", b: "0" }, { a: "0" }], true],
  ["what is undone beside something else counts", [{ a: "0" }, { b: "0" }], true],
])("%s", (_what, writes, tooOften) => {
  const rewrites = new Rewrites();
  const told = Array.from({ length: 10 }, () => writes.map((wanted) => rewrites.note("p", wanted, 0)));
  expect(told.flat().some((undone) => undone)).toBe(tooOften);
});

test("a write counts for a minute, and each other one for as long as it is repeated", () => {
  const rewrites = new Rewrites();
  const noteAt = (second: number, pod: string): boolean => rewrites.note(pod, A, second * 1_000);
  expect([0, 10, 20, 30].map((second) => noteAt(second, "p"))).toEqual([false, false, false, false]);
  expect(noteAt(59, "q")).toBe(false);
  expect(noteAt(60, "p")).toBe(false);
  expect(noteAt(69, "p")).toBe(true);
});

test("a forgotten object starts a new count", () => {
  const rewrites = new Rewrites();
  for (let write = 0; write < 4; write += 1) rewrites.note("p", A, 0);
  rewrites.forget("p");
  expect(rewrites.note("p", A, 0)).toBe(false);
});
