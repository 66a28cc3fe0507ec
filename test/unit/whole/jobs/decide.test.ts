import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/whole/jobs/decide.ts";
import type { JobAction, JobMember, Observed, Shown } from "../../../../src/whole/jobs/model.ts";

const NOW = 1_000_000;
const STARTED = new Date(NOW - 100_000).toISOString();
const FINALIZER = "legation.dev/whole";
const CHOICE = { fitting: ["west", "east"], why: "south: Cordoned" };
const RUNNING = { startTime: STARTED, active: 2 };

function job(status?: Job["status"], metadata: object = {}): Stored<Job> {
  const stored = { name: "sum", namespace: "team", uid: "u1", resourceVersion: "1", finalizers: [FINALIZER] };
  return { metadata: { ...stored, ...metadata }, ...(status === undefined ? {} : { status }) };
}

function place(parts: Partial<JobMember> = {}): JobMember {
  const { member = "west" } = parts;
  return { member, share: { member }, state: "usable", ...parts };
}

/** A lone Job's share has its status. */
function withStatus({ object: { status } = job(), places = [] }: Partial<Observed>): JobMember[] {
  return places.map((one) =>
    one.share.part !== undefined || status === undefined ? one : { ...one, share: { ...one.share, status } },
  );
}

function copy(status: NonNullable<Job["status"]>): Stored<Job> {
  return { metadata: { name: "sum", namespace: "team", uid: "m1", resourceVersion: "5" }, status };
}

/** A suspended copy. */
function idle(status: NonNullable<Job["status"]> = {}): Stored<Job> {
  return { ...copy({ ...PAUSED, ...status }), spec: QUEUED_SPEC };
}

function shownText({ status, shares }: Shown): string {
  if (shares.every(({ part }) => part === undefined)) return "";
  const conditions = (status.conditions ?? []).map(({ type, status: is }) => (is === "True" ? type : `not ${type}`));
  return [`${status.succeeded ?? 0} succeeded`, `${status.active ?? 0} active`, ...conditions].join(", ");
}

function reasonOf({ status: whole, shares }: Shown, member: string): string {
  const { status = whole } = shares.find((share) => share.member === member) ?? {};
  return status.conditions?.find(({ type }) => type === "Failed")?.reason ?? "";
}

function wordsFor(action: JobAction): string {
  switch (action.type) {
    case "status":
      return `status ${shownText(action.shown)}`.trim();
    case "report":
      return `report ${action.message}`;
    case "fail":
      return `fail ${action.member}: ${reasonOf(action.shown, action.member)}`;
    case "record": {
      const members = action.assignment.map(({ member, part }) =>
        part === undefined ? member : `${member} ${part.completions}`,
      );
      return `record ${members.join(", ")}${action.move === undefined ? "" : `, moved from ${action.move.from} to ${action.move.to}`}`;
    }
    case "hold":
    case "members":
      return action.type;
    case "release":
      return `release, asking ${action.members.join(", ") || "nobody"}`;
  }
}

function decided(observed: Partial<Observed>): string[] {
  const { actions, outcome, requeueAt } = decide(
    { object: job(), ...observed, places: withStatus(observed) },
    NOW,
    NOW,
  );
  const words = actions.map(wordsFor);
  return [outcome, ...words, ...(requeueAt === undefined ? [] : [`in ${requeueAt - NOW} ms`])];
}

const QUEUED = { labels: { "kueue.x-k8s.io/queue-name": "team" } };
const SPEC = { template: {} };
const QUEUED_SPEC = { ...SPEC, suspend: true };
const PAUSED = { conditions: [{ type: "Suspended", status: "True" }] };
const DELETED = { deletionTimestamp: STARTED };
const REFUSAL = { message: "quota", until: NOW + 50_000 };
const COMPLETE = { ...RUNNING, active: 0, conditions: [{ type: "Complete", status: "True" }] };

describe("a whole Job", () => {
  test.each<[string, Partial<Observed>, string[]]>([
    ["without a member goes to the best", { choice: CHOICE }, ["Placing", "record west"]],
    [
      "in a queue of Kueue has no member before it is admitted",
      { object: { ...job(undefined, QUEUED), spec: QUEUED_SPEC }, choice: CHOICE },
      ["Queued"],
    ],
    [
      "in a queue of Kueue goes to the best once it is admitted",
      { object: { ...job(undefined, QUEUED), spec: SPEC }, choice: CHOICE },
      ["Placing", "record west"],
    ],
    [
      "that Kueue has taken back shows that it has not begun, once its pods are gone",
      { object: { ...job(PAUSED, QUEUED), spec: QUEUED_SPEC }, places: [place({ copy: idle() })] },
      ["Following", "status"],
    ],
    [
      "that Kueue has taken back has no member then",
      { object: { ...job({}, QUEUED), spec: QUEUED_SPEC }, places: [place({ copy: idle() })] },
      ["Requeueing", "record "],
    ],
    [
      "that Kueue has admitted again for another member has no member, either",
      { object: { ...job({}, QUEUED), spec: SPEC }, places: [place({ copy: idle(), problem: "not selected" })] },
      ["Requeueing", "record "],
    ],
    [
      "that Kueue has admitted again for its member keeps it",
      { object: { ...job(PAUSED, QUEUED), spec: SPEC }, places: [place({ copy: idle() })] },
      ["InStep"],
    ],
    [
      "that Kueue has taken back keeps its member while pods of it are there",
      { object: { ...job({}, QUEUED), spec: QUEUED_SPEC }, places: [place({ copy: idle({ terminating: 1 }) })] },
      ["Following", "status"],
    ],
    [
      "that Kueue has taken back keeps its member after a pod has succeeded",
      {
        object: { ...job({ ...PAUSED, succeeded: 1 }, QUEUED), spec: QUEUED_SPEC },
        places: [place({ copy: idle({ succeeded: 1 }) })],
      },
      ["InStep"],
    ],
    [
      "that has begun and may not go on in its member waits there, and its author is told",
      { places: [place({ copy: { ...copy({}), spec: { ...SPEC, suspend: true } }, problem: "not selected" })] },
      ["Waiting", "report west has the Job, which has begun there: not selected", "in 30000 ms"],
    ],
    [
      "is not divided before all members that share it are read",
      { choice: { ...CHOICE, awaits: true } },
      ["Syncing", "in 1000 ms"],
    ],
    [
      "that no member may have waits, and its author is told",
      { choice: { fitting: [], why: "west: Full" } },
      ["Waiting", "report west: Full"],
    ],
    [
      "that its member refuses goes to the next",
      { places: [place({ refusal: REFUSAL })], choice: CHOICE },
      ["Placing", "record east, moved from west to east"],
    ],
    [
      "that its only member refuses waits, with the member's words",
      { places: [place({ refusal: REFUSAL })], choice: { fitting: ["west"], why: "east: Full" } },
      ["Waiting", "report west: quota; east: Full"],
    ],
    [
      "that its member may soon be sent again does not move",
      { places: [place({ refusal: { ...REFUSAL, until: NOW + 9_000 } })], choice: CHOICE },
      ["Refused"],
    ],
    [
      "that has started never moves",
      { object: job(RUNNING), places: [place({ copy: copy(RUNNING), refusal: REFUSAL })], choice: CHOICE },
      ["InStep"],
    ],
    ["whose copy is not there yet waits for it", { places: [place()] }, ["InStep"]],
    [
      "whose copy is gone after its start fails",
      { object: job(RUNNING), places: [place()] },
      ["Failing", "fail west: DeletedInMember"],
    ],
    [
      "whose copy may be there, in a member that does not answer, stays",
      { object: job(RUNNING), places: [place({ state: "silent" })] },
      ["InStep"],
    ],
    [
      "whose end the host refuses is not ended again and again",
      {
        object: job(RUNNING),
        places: [place({ state: "gone" })],
        held: { loss: { reason: "Refused", until: NOW + 5_000 } },
      },
      ["StatusHeld", "in 5000 ms"],
    ],
    [
      "whose overrides do not fit its member says so",
      { places: [place({ problem: "no such path" })] },
      ["Waiting", "report west: no such path", "in 30000 ms"],
    ],
    [
      "whose Cluster was removed fails",
      { object: job(RUNNING), places: [place({ state: "gone" })] },
      ["Failing", "fail west: ClusterRemoved"],
    ],
    ["that is finished is left as it is", { object: job(COMPLETE), places: [place({ state: "gone" })] }, ["Finished"]],
    [
      "that is being deleted waits for its copy to end",
      { object: job(RUNNING, DELETED), places: [place({ copy: copy(RUNNING) })] },
      ["Removing"],
    ],
    [
      "that is being deleted waits for a member that does not answer",
      { object: job(RUNNING, DELETED), places: [place({ state: "silent" })] },
      ["Unreachable"],
    ],
    [
      "that is being deleted goes once its member was asked",
      { object: job(RUNNING, DELETED), places: [place()] },
      ["Releasing", "release, asking west", "in 30000 ms"],
    ],
    [
      "that is being deleted waits until no request can make a copy any more",
      { object: job(RUNNING, DELETED), places: [place({ settlesAt: NOW + 700 })] },
      ["Settling", "in 700 ms"],
    ],
    [
      "that no member has goes at once when it is deleted",
      { object: job(undefined, DELETED) },
      ["Releasing", "release, asking nobody", "in 30000 ms"],
    ],
  ])("%s", (_, observed, expected) => {
    expect(decided(observed)).toEqual(expected);
  });
});

describe("the status of a whole Job is written", () => {
  test.each<[string, Partial<Observed>, string[]]>([
    ["when the Job starts", { places: [place({ copy: copy(RUNNING) })] }, ["Following", "status"]],
    [
      "at once when a condition differs",
      {
        object: job(RUNNING),
        places: [place({ copy: copy(COMPLETE) })],
        sent: { at: NOW - 1, shown: { status: RUNNING, shares: [] } },
      },
      ["Following", "status"],
    ],
    [
      "after a fifth of the Job's age when counters alone differ",
      {
        object: job(RUNNING),
        places: [place({ copy: copy({ ...RUNNING, active: 1 }) })],
        sent: { at: NOW - 1_000, shown: { status: RUNNING, shares: [] } },
      },
      ["Coalescing", "in 19000 ms"],
    ],
    [
      "not while the host refuses it",
      {
        object: job(RUNNING),
        places: [place({ copy: copy(COMPLETE) })],
        held: { status: { reason: "Refused", until: NOW + 5_000 } },
      },
      ["StatusHeld", "in 5000 ms"],
    ],
    [
      "after the pause, too, when the host refused the last one",
      {
        places: [place({ copy: copy({ ...RUNNING, active: 1 }) })],
        sent: { at: NOW - 1_000, shown: { status: RUNNING, shares: [] } },
      },
      ["Coalescing", "in 19000 ms"],
    ],
    ["not when it is as in the member", { object: job(RUNNING), places: [place({ copy: copy(RUNNING) })] }, ["InStep"]],
    [
      "not from a member that does not answer",
      { object: job(RUNNING), places: [place({ state: "silent", copy: copy(COMPLETE) })] },
      ["InStep"],
    ],
  ])("%s", (_, observed, expected) => {
    expect(decided(observed)).toEqual(expected);
  });
});

const PREFERENCES = { rebalance: false, clusters: { "*": { weight: 1, minReplicas: 0 } } };
const FAILED = { type: "Failed", status: "True", reason: "BackoffLimitExceeded", lastTransitionTime: STARTED };
const FAILING = { conditions: [{ ...FAILED, type: "FailureTarget" }], startTime: STARTED };
const SUSPENDED = { type: "Suspended", status: "True", lastTransitionTime: STARTED };
const DONE = { type: "Complete", status: "True", lastTransitionTime: STARTED };

/** A place of a divided Job: the status that is recorded, and the rest of the place. */
function share(member: string, status?: NonNullable<Job["status"]>, parts: Partial<JobMember> = {}): JobMember {
  const part = { completions: 5, weight: 1, minReplicas: 0 };
  return place({ member, share: { member, part, ...(status === undefined ? {} : { status }) }, ...parts });
}

describe("a divided Job", () => {
  const divided = { ...job(), spec: { completions: 10, parallelism: 4, template: {} } };
  const failing = { ...divided, status: FAILING };

  test.each<[string, Partial<Observed>, string[]]>([
    [
      "without members has all its shares recorded at once",
      { object: divided, choice: { ...CHOICE, preferences: PREFERENCES } },
      ["Placing", "record east 5, west 5"],
    ],
    [
      "whose preferences give no member a share waits",
      { object: divided, choice: { fitting: [], preferences: PREFERENCES, why: "west: NotPreferred" } },
      ["Waiting", "report west: NotPreferred"],
    ],
    [
      "shows the sum of its shares",
      {
        object: divided,
        places: [
          share("west", undefined, { copy: copy({ ...RUNNING, succeeded: 1 }) }),
          share("east", RUNNING, { copy: copy(RUNNING) }),
        ],
      },
      ["Following", "status 1 succeeded, 4 active"],
    ],
    [
      "is complete when its last share is",
      {
        object: { ...divided, status: { startTime: STARTED } },
        places: [
          share("west", { startTime: STARTED, succeeded: 5, conditions: [DONE] }),
          share("east", RUNNING, { copy: copy({ startTime: STARTED, succeeded: 5, conditions: [DONE] }) }),
        ],
      },
      ["Following", "status 10 succeeded, 0 active, SuccessCriteriaMet, Complete"],
    ],
    [
      "keeps what a finished share did when its copy is deleted",
      {
        object: { ...divided, status: { ...RUNNING, succeeded: 5 } },
        places: [
          share("west", { startTime: STARTED, succeeded: 5, conditions: [DONE] }),
          share("east", RUNNING, { copy: copy(RUNNING) }),
        ],
      },
      ["InStep"],
    ],
    [
      "fails with its first share, and is not over before the others have stopped",
      {
        object: { ...divided, status: RUNNING },
        places: [
          share("west", RUNNING, { copy: copy({ startTime: STARTED, failed: 1, conditions: [FAILED] }) }),
          share("east", RUNNING, { copy: copy(RUNNING) }),
        ],
      },
      ["Following", "status 0 succeeded, 2 active, FailureTarget"],
    ],
    [
      "is over once the others are suspended",
      {
        object: failing,
        places: [
          share("west", { conditions: [FAILED] }),
          share("east", RUNNING, {
            copy: { ...copy({ conditions: [SUSPENDED] }), spec: { suspend: true, template: {} } },
          }),
        ],
      },
      ["Following", "status 0 succeeded, 0 active, FailureTarget, Failed"],
    ],
    [
      "is not over while a copy is about to be resumed",
      {
        object: failing,
        places: [
          share("west", { conditions: [FAILED] }),
          share("east", undefined, { copy: copy({ conditions: [SUSPENDED] }) }),
        ],
      },
      ["Following", "status 0 succeeded, 0 active, FailureTarget"],
    ],
    [
      "ends a share that has not started when another fails",
      { object: failing, places: [share("west", { conditions: [FAILED] }), share("east")] },
      ["Failing", "fail east: OtherShareFailed"],
    ],
    [
      "waits for a share in a member that does not answer, before it is over",
      {
        object: { ...failing, status: { ...FAILING, active: 2 } },
        places: [share("west", { conditions: [FAILED] }), share("east", RUNNING, { state: "silent" })],
      },
      ["InStep"],
    ],
    [
      "fails when the copy of a running share is deleted",
      { object: { ...divided, status: RUNNING }, places: [share("west", RUNNING), share("east", RUNNING)] },
      ["Failing", "fail west: DeletedInMember"],
    ],
    [
      "does without the Cluster of a finished share",
      {
        object: { ...divided, status: RUNNING },
        places: [
          share("west", { startTime: STARTED, conditions: [DONE] }, { state: "gone" }),
          share("east", RUNNING, { copy: copy(RUNNING) }),
        ],
      },
      ["InStep"],
    ],
    [
      "gives a share that its member refuses to a member without one",
      {
        object: divided,
        places: [share("west", undefined, { refusal: REFUSAL }), share("east")],
        choice: { fitting: ["west", "east", "south"], why: "" },
      },
      ["Placing", "record south 5, east 5, moved from west to south"],
    ],
    [
      "keeps a share that its member refuses when every other has one",
      {
        object: divided,
        places: [share("west", undefined, { refusal: REFUSAL }), share("east")],
        choice: { fitting: ["west", "east"], why: "south: Cordoned" },
      },
      ["Waiting", "report west: quota; south: Cordoned"],
    ],
    [
      "goes on where a share is refused",
      {
        object: divided,
        places: [share("west", undefined, { refusal: REFUSAL }), share("east", undefined, { copy: copy(RUNNING) })],
        choice: { fitting: ["west", "east"], why: "" },
      },
      ["Following", "status 0 succeeded, 2 active"],
    ],
    [
      "whose record is damaged is left as it is",
      { object: divided, places: [place(), place({ member: "east" })], isUnreadable: true },
      [
        "Unreadable",
        "report annotation legation.dev/shares cannot be read, so nothing changes in members; delete the Job, and create it anew",
        "in 30000 ms",
      ],
    ],
    [
      "that is being deleted goes once all members were asked",
      { object: job(RUNNING, DELETED), places: [share("west"), share("east")] },
      ["Releasing", "release, asking west, east", "in 30000 ms"],
    ],
    [
      "that is being deleted waits for the last copy",
      { object: job(RUNNING, DELETED), places: [share("west"), share("east", RUNNING, { copy: copy(RUNNING) })] },
      ["Removing"],
    ],
  ])("%s", (_, observed, expected) => {
    expect(decided(observed)).toEqual(expected);
  });
});
