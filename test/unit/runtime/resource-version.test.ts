import { expect, test } from "vitest";
import { isBefore } from "../../../src/runtime/resource-version.ts";

test.each([
  ["9", "10", true],
  ["10", "9", false],
  ["99", "100", true],
  ["12", "13", true],
  ["13", "12", false],
  ["12", "12", false],
])("version %s is before %s: %s", (version, other, expected) => {
  expect(isBefore(version, other)).toBe(expected);
});
