import { expect, test } from "vitest";
import { readOverflowAfter } from "../../../src/api/overflow.ts";

test.each([
  ["30s", 30],
  ["5m", 300],
  ["1h30m", 5400],
  ["0s", 0],
  ["24h", 86_400],
])("reads %s as %j seconds", (text, seconds) => {
  expect(readOverflowAfter(text)).toBe(seconds);
});

test.each(["", "30", "s", "1d", "-1s", "24h1s", "30s ", "1m1h", "0.5s"])("refuses the duration %j", (text) => {
  expect(readOverflowAfter(text)).toBeUndefined();
});
