import { expect, test } from "vitest";
import { setLatest, setUntilEnded } from "../../../src/api/latest-entries.ts";

test("keeps the entries that were set last", () => {
  const map = new Map<string, number>();
  for (const [index, key] of ["a", "b", "a", "c", "d"].entries()) setLatest(map, key, index, 3);
  expect([...map]).toEqual([
    ["a", 2],
    ["c", 3],
    ["d", 4],
  ]);
});

test("drops the entries that have ended", () => {
  const map = new Map<string, number>();
  for (const [key, now] of [
    ["a", 1],
    ["b", 2],
    ["a", 3],
    ["c", 6],
  ] as const)
    setUntilEnded(map, key, now + 3, (end) => end <= now);
  expect([...map]).toEqual([["c", 9]]);
});
