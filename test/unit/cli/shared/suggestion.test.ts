import { expect, test } from "vitest";
import { didYouMean } from "../../../../src/cli/shared/suggestion.ts";

test.each<[string, string | undefined]>([
  ["wset", "did you mean west?"],
  ["West", "did you mean west?"],
  ["west", undefined],
  ["north", undefined],
])("for %s suggests: %s", (name, expected) => {
  expect(didYouMean(name, ["west", "east"])).toBe(expected);
});
