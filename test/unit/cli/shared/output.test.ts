import { expect, test } from "vitest";
import { counted } from "../../../../src/cli/shared/output.ts";
import { drainTimedOut } from "../../../../src/cli/unjoin/drain.ts";
import { pod } from "../../../support/builders/pod.ts";

test.each([
  [0, "0 pods"],
  [1, "1 pod"],
  [2, "2 pods"],
])("counts %i as %s", (number, words) => {
  expect(counted(number)).toBe(words);
  expect(counted(number, "proxy pod")).toBe(words.replace("pod", "proxy pod"));
});

test("counts one pod of a drain in the singular", () => {
  const problems = [[pod()], [pod(), pod()]].map((rest) => drainTimedOut("west", rest, 5000).message);
  expect(problems).toEqual([
    expect.stringContaining("1 pod had not ended after 5 s"),
    expect.stringContaining("2 pods had not ended after 5 s"),
  ]);
});
