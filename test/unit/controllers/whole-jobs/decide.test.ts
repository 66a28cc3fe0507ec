import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/whole-jobs/decide.ts";
import type { Observed, Place } from "../../../../src/controllers/whole-jobs/model.ts";

const NOW = 1_000_000;
const STARTED = new Date(NOW - 100_000).toISOString();
const FINALIZER = "legation.dev/whole";
const CHOICE = { fitting: ["west", "east"], why: "south: Cordoned" };
const RUNNING = { startTime: STARTED, active: 2 };

function job(status?: Job["status"], metadata: object = {}): Stored<Job> {
  const stored = { name: "sum", namespace: "team", uid: "u1", resourceVersion: "1", finalizers: [FINALIZER] };
  return { metadata: { ...stored, ...metadata }, ...(status === undefined ? {} : { status }) };
}

function place(parts: Partial<Place> = {}): Place {
  return { member: "west", state: "usable", ...parts };
}

function copy(status: NonNullable<Job["status"]>): Stored<Job> {
  return { metadata: { name: "sum", namespace: "team", uid: "m1", resourceVersion: "5" }, status };
}

function decided(observed: Partial<Observed>): string[] {
  const { actions, outcome, requeueAt } = decide({ job: job(), ...observed }, NOW, NOW);
  const words = actions.map((action) => {
    if (action.type === "status") return "status";
    if (action.type === "report") return `report ${action.message}`;
    if (action.type === "fail") return `fail ${action.reason}`;
    if (action.type === "record") {
      return `record ${action.member}${action.before === undefined ? "" : `, asking ${action.before}`}`;
    }
    return `release, asking ${action.member ?? "nobody"}`;
  });
  return [outcome, ...words, ...(requeueAt === undefined ? [] : [`in ${requeueAt - NOW} ms`])];
}

const DELETED = { deletionTimestamp: STARTED };
const REFUSAL = { message: "quota", until: NOW + 50_000 };
const COMPLETE = { ...RUNNING, active: 0, conditions: [{ type: "Complete", status: "True" }] };

describe("a whole Job", () => {
  test.each<[string, Partial<Observed>, string[]]>([
    ["without a member goes to the best", { choice: CHOICE }, ["Placing", "record west"]],
    [
      "that no member may have waits, and its author is told",
      { choice: { fitting: [], why: "west: Full" } },
      ["Waiting", "report west: Full"],
    ],
    [
      "that its member refuses goes to the next",
      { place: place({ refusal: REFUSAL }), choice: CHOICE },
      ["Placing", "record east, asking west"],
    ],
    [
      "that its only member refuses waits, with the member's words",
      { place: place({ refusal: REFUSAL }), choice: { fitting: ["west"], why: "east: Full" } },
      ["Waiting", "report west: quota; east: Full"],
    ],
    [
      "that its member may soon be sent again does not move",
      { place: place({ refusal: { ...REFUSAL, until: NOW + 9_000 } }), choice: CHOICE },
      ["Refused"],
    ],
    [
      "that has started never moves",
      { job: job(RUNNING), place: place({ copy: copy(RUNNING), refusal: REFUSAL }), choice: CHOICE },
      ["InStep"],
    ],
    ["whose copy is not there yet waits for it", { place: place() }, ["InStep"]],
    [
      "whose copy is gone after its start fails",
      { job: job(RUNNING), place: place() },
      ["Failing", "fail DeletedInMember"],
    ],
    [
      "whose copy may be there, in a member that does not answer, stays",
      { job: job(RUNNING), place: place({ state: "silent" }) },
      ["InStep"],
    ],
    [
      "whose end the host refuses is not ended again and again",
      { job: job(RUNNING), place: place({ state: "gone" }), held: { loss: { reason: "Refused", until: NOW + 5_000 } } },
      ["StatusHeld", "in 5000 ms"],
    ],
    [
      "whose overrides do not fit its member says so",
      { place: place({ problem: "no such path" }) },
      ["Waiting", "report west: no such path", "in 30000 ms"],
    ],
    [
      "whose Cluster was removed fails",
      { job: job(RUNNING), place: place({ state: "gone" }) },
      ["Failing", "fail ClusterRemoved"],
    ],
    ["that is finished is left as it is", { job: job(COMPLETE), place: place({ state: "gone" }) }, ["Finished"]],
    [
      "that is being deleted waits for its copy to end",
      { job: job(RUNNING, DELETED), place: place({ copy: copy(RUNNING) }) },
      ["Removing"],
    ],
    [
      "that is being deleted waits for a member that does not answer",
      { job: job(RUNNING, DELETED), place: place({ state: "silent" }) },
      ["Unreachable"],
    ],
    [
      "that is being deleted goes once its member was asked",
      { job: job(RUNNING, DELETED), place: place() },
      ["Releasing", "release, asking west"],
    ],
    [
      "that no member has goes at once when it is deleted",
      { job: job(undefined, DELETED) },
      ["Releasing", "release, asking nobody"],
    ],
  ])("%s", (_, observed, expected) => {
    expect(decided(observed)).toEqual(expected);
  });
});

describe("the status of a whole Job is written", () => {
  test.each<[string, Partial<Observed>, string[]]>([
    ["when the Job starts", { place: place({ copy: copy(RUNNING) }) }, ["Following", "status"]],
    [
      "at once when a condition differs",
      { job: job(RUNNING), place: place({ copy: copy(COMPLETE) }), statusSent: { at: NOW - 1, status: RUNNING } },
      ["Following", "status"],
    ],
    [
      "after a fifth of the Job's age when counters alone differ",
      {
        job: job(RUNNING),
        place: place({ copy: copy({ ...RUNNING, active: 1 }) }),
        statusSent: { at: NOW - 1_000, status: RUNNING },
      },
      ["Coalescing", "in 19000 ms"],
    ],
    [
      "not while the host refuses it",
      {
        job: job(RUNNING),
        place: place({ copy: copy(COMPLETE) }),
        held: { status: { reason: "Refused", until: NOW + 5_000 } },
      },
      ["StatusHeld", "in 5000 ms"],
    ],
    [
      "after the pause, too, when the host refused the last one",
      {
        place: place({ copy: copy({ ...RUNNING, active: 1 }) }),
        statusSent: { at: NOW - 1_000, status: RUNNING },
      },
      ["Coalescing", "in 19000 ms"],
    ],
    ["not when it is as in the member", { job: job(RUNNING), place: place({ copy: copy(RUNNING) }) }, ["InStep"]],
    [
      "not from a member that does not answer",
      { job: job(RUNNING), place: place({ state: "silent", copy: copy(COMPLETE) }) },
      ["InStep"],
    ],
  ])("%s", (_, observed, expected) => {
    expect(decided(observed)).toEqual(expected);
  });
});
