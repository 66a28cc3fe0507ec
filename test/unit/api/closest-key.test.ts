import { expect, test } from "vitest";
import { closestKey, closestName } from "../../../src/api/closest-key.ts";

test.each<[string, string | undefined]>([
  ["legation.dev/cluster", "legation.dev/clusters"],
  ["legation.dev/clutsers", "legation.dev/clusters"],
  ["legation.dev/overides", "legation.dev/overrides"],
  ["legation.dev/weights", undefined],
])("the known key nearest to %s, within four edits, is %s", (key, expected) => {
  expect(closestKey(key, ["legation.dev/clusters", "legation.dev/overrides"])).toBe(expected);
});

test("a name is near only if no more than a third of its letters differ", () => {
  expect(closestName("wset", ["west", "east"])).toBe("west");
  expect(closestName("ab", ["west"])).toBeUndefined();
});

test("the first of several equally near keys is taken", () => {
  expect(closestKey("aest", ["west", "east"])).toBe("west");
});
