import { expect, test } from "vitest";
import { whyNotMore } from "../../../../src/cli/plan/outcome.ts";

const full = { reason: "Full", message: "cpu: 2 requested, 1 left" };
const behind = { reason: "LessPreferred", message: "east has more room" };

test.each([
  ["all pods without a number", [{ ...full, pods: 4 }], ["cpu: 2 requested, 1 left"]],
  [
    "some pods with theirs, so that they and the planned ones add up",
    [
      { ...behind, pods: 2 },
      { ...full, pods: 1 },
    ],
    ["east has more room (2 pods)", "cpu: 2 requested, 1 left (1 pod)"],
  ],
  ["no pods with nothing", [], []],
])("says why %s do not go to a member", (_, whyNot, words) => {
  expect(whyNotMore({ whyNot }, 4)).toEqual(words);
});
