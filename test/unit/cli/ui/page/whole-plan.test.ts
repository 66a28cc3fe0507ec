import { expect, test } from "vitest";
import type { WorkloadPlan } from "../../../../../src/cli/plan/outcome.ts";
import { builtInWords, objectWords } from "../../../../../src/cli/ui/page/whole-plan.ts";

const declined = { cluster: "east", reason: "NotSelected", message: "not selected" };
const noOthers = { others: [] };

test.each<[string, NonNullable<WorkloadPlan["whole"]>, ReturnType<typeof builtInWords>]>([
  [
    "goes to its member, and the others have their reasons",
    { cluster: "west", others: [declined] },
    { summary: "Goes to west as a whole.", reasons: [{ member: "east", message: "not selected" }] },
  ],
  [
    "waits in its member for room",
    { cluster: "west", message: "cpu: 4 requested, 2 left", ...noOthers },
    {
      summary: "Goes to west as a whole.",
      reasons: [{ member: "west", message: "waits there for room: cpu: 4 requested, 2 left" }],
    },
  ],
  [
    "is divided",
    {
      shares: [
        { cluster: "east", completions: 1, parallelism: 1 },
        { cluster: "west", completions: 3, parallelism: 1, message: "full" },
      ],
      ...noOthers,
    },
    {
      summary: "Divided: 1 completions in east, 3 completions in west.",
      reasons: [{ member: "west", message: "waits there for room: full" }],
    },
  ],
  [
    "waits, and each member has its reason",
    { reason: "NotPlaced", message: "east: not selected", others: [declined] },
    { summary: "No member gets it.", reasons: [{ member: "east", message: "not selected" }] },
  ],
  [
    "waits for a reason of no single member",
    { reason: "NotPlaced", message: "namespace team is not opted in", ...noOthers },
    { summary: "No member gets it.", reasons: [{ message: "namespace team is not opted in" }] },
  ],
])("the plan of a whole Job that %s", (_, whole, words) => {
  expect(builtInWords(whole)).toEqual(words);
});

const misfit = { cluster: "west", message: "legation.dev/overrides: no field /size" };

test.each<[string, NonNullable<WorkloadPlan["object"]>, ReturnType<typeof objectWords>]>([
  [
    "goes to members, to one of them later",
    { clusters: [{ cluster: "east" }, { cluster: "west", message: "as soon as it answers" }], others: [], misfits: [] },
    { summary: "Goes to east, west.", reasons: [{ member: "west", message: "as soon as it answers" }] },
  ],
  [
    "is placed only in a member that it does not fit",
    { clusters: [{ cluster: "west" }], others: [], misfits: [misfit] },
    { summary: "No member gets it.", reasons: [{ member: "west", message: misfit.message }] },
  ],
  [
    "goes to members but for those that it does not fit or that are left out",
    { clusters: [{ cluster: "north" }, { cluster: "west" }], others: [declined], misfits: [misfit] },
    {
      summary: "Goes to north.",
      reasons: [
        { member: "west", message: misfit.message },
        { member: "east", message: "not selected" },
      ],
    },
  ],
  [
    "no member is looked for",
    { problem: "namespace team is not opted in", clusters: [], others: [], misfits: [] },
    { summary: "No member gets it.", reasons: [{ message: "namespace team is not opted in" }] },
  ],
  [
    "has no members to go to",
    { clusters: [], others: [], misfits: [] },
    { summary: "No member gets it.", reasons: [{ message: "this cluster has no members" }] },
  ],
])("the plan of a whole object that %s", (_, object, words) => {
  expect(objectWords(object)).toEqual(words);
});
