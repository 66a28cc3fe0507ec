import { expect, test } from "vitest";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import { Gaps } from "../../../../src/cli/shared/gaps.ts";

test("tells each gap once, with its remedy, and counts a cluster as lacking for gaps and failures alone", () => {
  const told: string[] = [];
  const gaps = new Gaps((line) => told.push(line));
  for (let times = 0; times < 2; times += 1) gaps.add("west/a1", "its log is gone", "look at the node");
  gaps.addFailure("east", new Failure("failure", { object: "Cluster east", problem: "does not answer" }));
  gaps.note("waiting for pods");
  expect(told).toEqual([
    "west/a1: its log is gone\n  look at the node",
    "Cluster east: does not answer",
    "waiting for pods",
  ]);
  expect(gaps.lacking).toEqual(["west/a1", "east"]);
});
