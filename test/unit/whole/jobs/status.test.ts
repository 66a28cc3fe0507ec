import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../../src/api/kubernetes.ts";
import { hasStarted, isFinished, isLost } from "../../../../src/whole/jobs/kind.ts";
import type { JobShare } from "../../../../src/whole/jobs/shares.ts";
import { lostJobStatus, shareWithStatus, statusOnHost } from "../../../../src/whole/jobs/status.ts";

type Status = NonNullable<Job["status"]>;

function job(spec: object = {}, status?: Status): Stored<Job> {
  return {
    metadata: { name: "sum", namespace: "team", uid: "u1", resourceVersion: "1" },
    spec: { template: {}, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

function lone(status: Status): JobShare[] {
  return [{ member: "west", status }];
}

/** Shares of a divided Job. */
function shares(...statuses: readonly (Status | undefined)[]): JobShare[] {
  return statuses.map((status, index) => ({
    member: ["west", "east", "south"][index] ?? "",
    part: { completions: 5, weight: 1, minReplicas: 0 },
    ...(status === undefined ? {} : { status }),
  }));
}

const AT = "2026-01-01T00:00:00Z";
const LATER = "2026-01-02T00:00:00Z";
const LOST = { reason: "DeletedInMember", message: "gone", now: LATER } as const;
const MET = { type: "SuccessCriteriaMet", status: "True" };

function typesOf({ conditions = [] }: NonNullable<Job["status"]>): string[] {
  return conditions.map(({ type }) => type);
}

describe("a Job whose copy is lost", () => {
  test("fails, and keeps its counters and other conditions", () => {
    const conditions = [{ type: "Suspended", status: "False" }];
    const status = { startTime: AT, active: 2, succeeded: 3, conditions };
    const failed = lostJobStatus({ ...job(), status }, LOST);
    expect(failed).toMatchObject({ startTime: AT, active: 0, ready: 0, succeeded: 3 });
    expect(typesOf(failed)).toEqual(["Suspended", "FailureTarget", "Failed"]);
    expect([isFinished({ status }), isFinished({ status: failed })]).toEqual([false, true]);
    expect([isLost({ status }), isLost({ status: failed })]).toEqual([false, true]);
  });

  test("is complete when it had met its success criteria", () => {
    const complete = lostJobStatus({ ...job(), status: { startTime: AT, conditions: [MET] } }, LOST);
    expect(typesOf(complete)).toEqual(["SuccessCriteriaMet", "Complete"]);
    expect(complete.completionTime).toBe(LATER);
  });
});

describe("the status of a copy", () => {
  test.each([
    ["Complete", "SuccessCriteriaMet"],
    ["Failed", "FailureTarget"],
  ])("gets the reason that the host wants before %s", (final, reason) => {
    const conditions = [{ type: final, status: "True", message: "m" }];
    const status = statusOnHost(job(), lone({ startTime: AT, conditions }));
    expect(status.conditions).toEqual([{ type: reason, status: "True", message: "m" }, ...conditions]);
    expect(statusOnHost(job(), lone(status))).toEqual(status);
  });

  test("keeps the start time that the host has, unless the Job is suspended", () => {
    const started = { ...job(), status: { startTime: AT } };
    expect(statusOnHost(started, lone({ startTime: LATER }))).toEqual({ startTime: AT });
    expect(statusOnHost({ ...job({ suspend: true }), status: { startTime: AT } }, lone({}))).toEqual({});
    expect(statusOnHost(job(), lone({ startTime: LATER }))).toEqual({ startTime: LATER });
  });

  test("leaves the conditions that other clients of the host set, unless the member has one of that type", () => {
    const [own, other] = [
      { type: "Suspended", status: "False" },
      { type: "Audited", status: "True", reason: "ByHost" },
    ];
    const before = { conditions: [other, { type: "Suspended", status: "True" }] };
    expect(statusOnHost(job({}, before), lone({ conditions: [own] })).conditions).toEqual([own, other]);
    expect(statusOnHost(job({}, before), lone({})).conditions).toEqual([other]);
    expect(statusOnHost(job({}, before), shares({ active: 1 })).conditions).toEqual([other]);
    const theirs = { ...other, reason: "InMember" };
    expect(statusOnHost(job({}, before), lone({ conditions: [theirs] })).conditions).toEqual([theirs]);
    expect(hasStarted({ status: { conditions: [other] } })).toBe(false);
  });

  test("says that the Job had started, also without a start time", () => {
    expect(hasStarted(job())).toBe(false);
    expect(hasStarted({ status: { succeeded: 1 } })).toBe(true);
    expect(hasStarted({ status: { conditions: [{ type: "Suspended", status: "True" }] } })).toBe(true);
  });
});

const FAILED = {
  type: "Failed",
  status: "True",
  reason: "BackoffLimitExceeded",
  message: "too often",
  lastTransitionTime: LATER,
};
const COMPLETE = { type: "Complete", status: "True", lastTransitionTime: LATER };
const SUSPENDED = { type: "Suspended", status: "True", lastTransitionTime: AT };
const RESUMED = { type: "Suspended", status: "False", reason: "JobResumed", lastTransitionTime: LATER };

function shown(sum: Status): string {
  return (sum.conditions ?? []).map(({ type, status }) => (status === "True" ? type : `not ${type}`)).join(", ");
}

describe("the status of a divided Job", () => {
  test("sums the counters, and leaves out those that are zero as the API server does", () => {
    const west = { startTime: LATER, active: 2, ready: 0, succeeded: 3, terminating: 0 };
    const sum = statusOnHost(job(), shares(west, { startTime: AT, active: 1, ready: 1 }, undefined));
    expect(sum).toEqual({ startTime: AT, active: 3, ready: 1, succeeded: 3, terminating: 0 });
  });

  test("has the last end of its shares once all are complete", () => {
    const west = { startTime: AT, completionTime: LATER, succeeded: 5, conditions: [COMPLETE] };
    const east = { startTime: AT, completionTime: AT, succeeded: 5, conditions: [COMPLETE] };
    const sum = statusOnHost(job(), shares(west, east));
    expect(sum).toMatchObject({ completionTime: LATER, succeeded: 10 });
    expect(shown(sum)).toBe("SuccessCriteriaMet, Complete");
    const unfinished = statusOnHost(job(), shares(west, { startTime: AT, active: 1 }));
    expect(unfinished).not.toHaveProperty("completionTime");
    expect(shown(unfinished)).toBe("");
  });

  test("tells which share failed, and keeps to it", () => {
    const failed = statusOnHost(job(), shares({ startTime: AT, active: 1 }, { startTime: AT, conditions: [FAILED] }));
    expect(failed.conditions).toEqual([{ ...FAILED, type: "FailureTarget", message: "east: too often" }]);
    const later = { ...FAILED, message: "another", lastTransitionTime: AT };
    const both = statusOnHost(job({}, failed), shares({ conditions: [later] }, { conditions: [FAILED] }));
    expect(both.conditions?.map(({ type, message }) => [type, message])).toEqual([
      ["FailureTarget", "east: too often"],
      ["Failed", "east: too often"],
    ]);
  });

  test.each<[string, readonly (Status | undefined)[], string]>([
    ["suspended when all shares are", [{ conditions: [SUSPENDED] }, { conditions: [SUSPENDED] }], "Suspended"],
    ["not suspended before all shares are", [{ conditions: [SUSPENDED] }, { active: 1 }], ""],
    ["suspended when the others have finished", [{ conditions: [SUSPENDED] }, { conditions: [COMPLETE] }], "Suspended"],
    ["resumed when no share is suspended any more", [{ conditions: [RESUMED] }, { active: 1 }], "not Suspended"],
  ])("is %s", (_, statuses, conditions) => {
    expect(shown(statusOnHost(job(), shares(...statuses)))).toBe(conditions);
  });

  test("is recorded without what the sum does not need, nor nulls", () => {
    const [share] = shares(undefined);
    const conditions = [{ ...SUSPENDED, lastProbeTime: null }, FAILED] as NonNullable<Status["conditions"]>;
    const copied = { status: { active: 1, uncountedTerminatedPods: { failed: ["a"] }, conditions } };
    expect(share && shareWithStatus(share, { ...copied, spec: { suspend: true, template: {} } }).status).toEqual({
      active: 1,
      conditions: [SUSPENDED, FAILED],
    });
    expect(share && shareWithStatus(share, copied).status?.conditions).toEqual([FAILED]);
  });
});
