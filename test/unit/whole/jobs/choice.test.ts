import { expect, test } from "vitest";
import { mayHave } from "../../../../src/whole/jobs/choice.ts";

test("a whole Job waits in a member without room, and not in one whose nodes are all too small", () => {
  const refusals = [
    { cluster: "east", reason: "Full", message: "cpu: 4 requested, 2 left" },
    { cluster: "south", reason: "TooLarge", message: "cpu: 4 requested, no node has more than 2" },
  ] as const;
  const ranking = { fitting: ["west"], full: ["south", "east"], preemptable: [], refusals };
  expect(mayHave(ranking)).toEqual(["west", "east"]);
});
