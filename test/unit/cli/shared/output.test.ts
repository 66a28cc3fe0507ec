import { expect, test } from "vitest";
import { counted } from "../../../../src/cli/shared/output.ts";

test.each([
  [0, "0 pods"],
  [1, "1 pod"],
  [2, "2 pods"],
])("counts %i as %s", (number, words) => {
  expect(counted(number)).toBe(words);
  expect(counted(number, "proxy pod")).toBe(words.replace("pod", "proxy pod"));
});
