import { expect, test } from "vitest";
import type { WorkloadPlan } from "../../../../../src/cli/plan/outcome.ts";
import { wholeWords } from "../../../../../src/cli/ui/page/whole-plan.ts";

const declined = { cluster: "east", reason: "NotSelected", message: "not selected" };
const misfit = { cluster: "west", message: "legation.dev/overrides: no field /size" };

test.each<[string, NonNullable<WorkloadPlan["object"]>, ReturnType<typeof wholeWords>]>([
  [
    "goes to members, to one of them later",
    { clusters: [{ cluster: "east" }, { cluster: "west", message: "as soon as it answers" }], others: [], misfits: [] },
    { summary: "Goes to east, west.", reasons: [{ member: "west", message: "as soon as it answers" }] },
  ],
  [
    "is divided",
    {
      clusters: [
        { cluster: "east", amounts: { completions: 1, parallelism: 1 } },
        { cluster: "west", amounts: { completions: 3, parallelism: 1 }, message: "waits there for room: full" },
      ],
      others: [],
      misfits: [],
    },
    {
      summary: "Goes to east (completions: 1, parallelism: 1), west (completions: 3, parallelism: 1).",
      reasons: [{ member: "west", message: "waits there for room: full" }],
    },
  ],
  [
    "waits, and each member has its reason",
    { clusters: [], others: [declined], misfits: [] },
    { summary: "No member gets it.", reasons: [{ member: "east", message: "not selected" }] },
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
    { summary: "No member gets it.", reasons: [{ message: "no member cluster has joined: see `legation join`" }] },
  ],
])("the plan of a whole object that %s", (_, object, words) => {
  expect(wholeWords(object)).toEqual(words);
});
