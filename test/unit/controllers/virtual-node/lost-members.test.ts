import { expect, test } from "vitest";
import { isHostLikelyCutOff } from "../../../../src/controllers/virtual-node/decide.ts";

test.each([
  // Lost members, all members, and the expected result.
  [0, 0, false],
  [0, 5, false],
  [1, 1, false],
  [1, 2, false],
  [2, 2, true],
  [2, 3, false],
  [3, 3, true],
  [3, 5, true],
  [3, 6, false],
  [11, 20, true],
  [10, 20, false],
])("blames the host, or not, for %i lost of %i members: %s", (lost, all, expected) => {
  expect(isHostLikelyCutOff(lost, all)).toBe(expected);
});
