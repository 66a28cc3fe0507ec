import { describe, expect, test } from "vitest";
import { readWishesOf, withWishes } from "../../../src/api/workload-wishes.ts";

const CLUSTERS = "legation.dev/clusters";
const SPREAD = "legation.dev/cluster-spread";

describe("the annotations that count for a pod", () => {
  test.each<[string, Record<string, string>, Record<string, string>, Record<string, string>]>([
    ["are completed by its workload's wishes", {}, { [CLUSTERS]: "west" }, { [CLUSTERS]: "west" }],
    ["are its own before its workload's", { [CLUSTERS]: "east" }, { [CLUSTERS]: "west" }, { [CLUSTERS]: "east" }],
    [
      "take nothing from the workload that changes the pod",
      {},
      { "legation.dev/group": "a", "legation.dev/overrides": "[]", "legation.dev/delegate": "false", note: "a" },
      {},
    ],
    [
      "are its workload's before an outdated copy",
      { [CLUSTERS]: "west", [SPREAD]: "[]" },
      { [CLUSTERS]: "east", "legation.dev/outdated-in-template": CLUSTERS },
      { [CLUSTERS]: "east", [SPREAD]: "[]" },
    ],
    [
      "lose an outdated copy that the workload no longer wishes",
      { [CLUSTERS]: "west" },
      { "legation.dev/outdated-in-template": CLUSTERS },
      {},
    ],
    [
      "keep what is no wish, whatever the workload lists",
      { "legation.dev/group": "a" },
      { "legation.dev/outdated-in-template": "legation.dev/group,nonsense" },
      { "legation.dev/group": "a" },
    ],
  ])("%s", (_, pod, workload, expected) => {
    expect(withWishes(pod, workload)).toEqual(expected);
  });
});

test.each([
  ["Deployment/web", { kind: "Deployment", name: "web" }],
  ["StatefulSet/db", { kind: "StatefulSet", name: "db" }],
  ["Job/sum", undefined],
  ["Deployment/", undefined],
  ["Deployment/team/web", undefined],
  ["web", undefined],
])("reads %j as a workload: %j", (text, workload) => {
  expect(readWishesOf(text)).toEqual(workload);
});
