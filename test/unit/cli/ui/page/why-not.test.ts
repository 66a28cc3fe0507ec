import { expect, test } from "vitest";
import { whyNotMore } from "../../../../../src/cli/ui/page/why-not.ts";

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
    ["2 pods of 4: east has more room", "1 pod of 4: cpu: 2 requested, 1 left"],
  ],
  ["no pods with nothing", [], []],
])("says why %s do not go to a member", (_, whyNot, words) => {
  expect(whyNotMore({ whyNot }, 4)).toEqual(words);
});
