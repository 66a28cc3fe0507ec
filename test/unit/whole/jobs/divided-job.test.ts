import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/whole/jobs/decide.ts";
import { afterResumption, jobOfShare } from "../../../../src/whole/jobs/division.ts";
import { demandFor, isWantedIn } from "../../../../src/whole/jobs/in-member.ts";
import { hasStarted, isFinished, isMarkedTrue } from "../../../../src/whole/jobs/kind.ts";
import type { JobAction, JobMember } from "../../../../src/whole/jobs/model.ts";
import { isFailing, type JobShare, membersOfJob, sharesOf, sharesRecord } from "../../../../src/whole/jobs/shares.ts";

const MEMBERS = ["west", "east", "south"] as const;
type Name = (typeof MEMBERS)[number];
const COMPLETIONS = 4;
const PREFERENCES = { rebalance: false, clusters: { "*": { weight: 1, minReplicas: 0, maxReplicas: 1 } } };
const NOW = 1_000_000;
const AT = new Date(0).toISOString();

/** A member with its copy of a share, and that copy as the controller last saw it. */
interface Member {
  state: "usable" | "silent" | "gone";
  refuses: boolean;
  copy?: Copy;
  seen?: Stored<Job> | undefined;
}

interface Copy {
  readonly share: number;
  readonly job: Stored<Job>;
  /** Pods that run. The status of the copy may not have them yet. */
  readonly pods: number;
  /** The `spec.suspend` before a change that the member's Job controller has not seen yet. */
  readonly before?: boolean;
}

/** A host with one divided Job, members whose Job controllers work, and a controller that may be killed at any write. */
class World {
  job: Stored<Job> = {
    metadata: { name: "sum", namespace: "team", uid: "u1", resourceVersion: "1" },
    spec: { completions: COMPLETIONS, parallelism: 2, template: {} },
  };
  readonly members: Readonly<Record<Name, Member>> = {
    west: { state: "usable", refuses: false },
    east: { state: "usable", refuses: false },
    south: { state: "usable", refuses: false },
  };
  readonly completed: number[] = [];

  /** Decides from what was seen, and writes if the controller lives on. */
  reconcile(isKilled: boolean): void {
    const places = (sharesOf(this.job) ?? []).map((share): JobMember => {
      const { state, copy, seen, refuses } = this.members[share.member as Name];
      const refusal = refuses && seen === undefined ? { refusal: { message: "quota", until: NOW + 60_000 } } : {};
      const changing = isSuspended(copy?.job) === isSuspended(seen) ? {} : { isChanging: true };
      const own = seen === undefined ? {} : { copy: seen };
      return { member: share.member, share, state, ...own, ...refusal, ...changing };
    });
    const fitting = MEMBERS.filter((name) => this.members[name].state === "usable" && !this.members[name].refuses);
    const choice = { fitting, preferences: PREFERENCES, why: "" };
    const { actions } = decide({ object: this.job, places, choice }, NOW, NOW);
    if (!isKilled) for (const action of actions) this.#execute(action);
  }

  #execute(action: JobAction): void {
    switch (action.type) {
      case "record":
        if (action.move === undefined || this.#isConfirmedAbsent(action.move.from))
          this.#write(action.assignment, this.job.status);
        return;
      case "fail":
        if (this.members[action.member as Name].state !== "gone" && !this.#isConfirmedAbsent(action.member)) return;
        this.#write(action.shown.shares, action.shown.status);
        return;
      case "status":
        this.#write(action.shown.shares, action.shown.status);
        return;
      case "hold":
      case "members":
      case "release":
      case "report":
    }
  }

  #isConfirmedAbsent(name: string): boolean {
    const { state, copy } = this.members[name as Name];
    return state === "usable" && copy === undefined;
  }

  #write(shares: readonly JobShare[], status: Job["status"]): void {
    const before = this.job.status ?? {};
    // The API server refuses all of these.
    expect(status?.succeeded ?? 0).toBeGreaterThanOrEqual(before.succeeded ?? 0);
    expect(isFinished(this.job)).toBe(false);
    const next = status === undefined ? {} : { status };
    if (isFinished(next)) expect(status?.active ?? 0).toBe(0);
    const annotations = sharesRecord(shares);
    this.job = { ...this.job, metadata: { ...this.job.metadata, annotations }, ...next };
  }

  /** Brings the member's copy in line, as the copier does. */
  copy(name: Name): void {
    const member = this.members[name];
    if (member.state !== "usable") return;
    const shares = sharesOf(this.job) ?? [];
    const index = shares.findIndex((share) => share.member === name);
    const share = shares[index];
    if (share === undefined || !isWantedIn(this.job, name)) {
      delete member.copy;
      return;
    }
    const demand = demandFor(this.job, name);
    const given = afterResumption(jobOfShare(this.job, share, shares), member.copy?.job);
    const { status: _, ...fresh } = given;
    if (member.copy === undefined) {
      if (demand !== "needed" || member.refuses) return;
      expect(hasStarted(share) || isFailing(this.job), "a share that has started is not made again").toBe(false);
      member.copy = { share: index, job: fresh, pods: 0 };
    } else if (demand !== "frozen") {
      const { status } = member.copy.job;
      const before = isSuspended(member.copy.job);
      const change = before === isSuspended(fresh) ? {} : { before };
      member.copy = { ...member.copy, ...change, job: { ...fresh, ...(status === undefined ? {} : { status }) } };
    }
  }

  /** Lets the member's Job controller start pods as it read the copy before a change. Its status is refused: the copy has changed. */
  workLate(name: Name): void {
    const { copy } = this.members[name];
    if (copy?.before === false && !isFinished(copy.job)) this.members[name].copy = { ...copy, pods: 1 };
  }

  /** Lets the member's Job controller take a step; `fails`: a pod fails once too often. */
  work(name: Name, fails: boolean): void {
    const member = this.members[name];
    const { copy } = member;
    if (copy === undefined || isFinished(copy.job)) return;
    const { completions = 0, suspend = false } = copy.job.spec ?? {};
    const { succeeded = 0, ...status } = copy.job.status ?? {};
    const condition = { status: "True", lastTransitionTime: AT, lastProbeTime: AT };
    const done = (conditions: NonNullable<Job["status"]>["conditions"], more: NonNullable<Job["status"]>): void => {
      const own = conditions === undefined ? {} : { conditions };
      const { active: __, conditions: ___, ...kept } = status;
      const { before: ____, ...seen } = copy;
      member.copy = { ...seen, pods: more.active ?? 0, job: { ...copy.job, status: { ...kept, ...more, ...own } } };
    };
    if (suspend) done([{ type: "Suspended", ...condition }], { succeeded });
    else if (fails) done([{ type: "Failed", ...condition }], { succeeded, startTime: AT });
    else if (succeeded + 1 < completions) done(undefined, { succeeded: succeeded + 1, active: 1, startTime: AT });
    else {
      this.completed.push(copy.share);
      done([{ type: "Complete", ...condition }], { succeeded: completions, startTime: AT, completionTime: AT });
    }
  }

  suspend(suspend: boolean): void {
    if (!isFinished(this.job)) this.job = { ...this.job, spec: { template: {}, ...this.job.spec, suspend } };
  }

  see(name: Name): void {
    if (this.members[name].state === "usable") this.members[name].seen = this.members[name].copy?.job;
  }

  /** Shares that a member may be working on. */
  running(): number[] {
    return MEMBERS.flatMap((name) => {
      const { copy, state } = this.members[name];
      return copy !== undefined && state !== "gone" && copy.pods > 0 ? [copy.share] : [];
    });
  }

  check(): void {
    const live = MEMBERS.flatMap((name) => {
      const { copy, state } = this.members[name];
      return copy === undefined || state === "gone" ? [] : [copy.share];
    });
    expect(new Set(live).size, "no share has two copies").toBe(live.length);
    const parts = sharesOf(this.job)?.map(({ part }) => part?.completions ?? 0) ?? [];
    if (parts.length > 0)
      expect(
        parts.reduce((sum, part) => sum + part, 0),
        "no share is lost",
      ).toBe(COMPLETIONS);
    expect(new Set(this.completed).size, "no share is done twice").toBe(this.completed.length);
    if (isMarkedTrue(this.job.status, "Complete")) {
      expect(this.completed).toHaveLength(membersOfJob(this.job).length);
      expect(this.job.status?.succeeded).toBe(COMPLETIONS);
    }
    if (isMarkedTrue(this.job.status, "Failed"))
      expect(this.running(), "nothing runs once the Job has failed").toEqual([]);
  }
}

function isSuspended(job: Job | undefined): boolean {
  return job?.spec?.suspend === true;
}

const STEPS: Readonly<Record<string, (world: World, name: Name) => void>> = {
  reconcile: (world) => world.reconcile(false),
  "reconcile, killed": (world) => world.reconcile(true),
  copy: (world, name) => world.copy(name),
  work: (world, name) => world.work(name, false),
  "work, late": (world, name) => world.workLate(name),
  suspend: (world) => world.suspend(true),
  "suspend everywhere": (world) => {
    world.suspend(true);
    for (const name of MEMBERS) for (const step of ["copy", "work", "see"]) STEPS[step]?.(world, name);
    world.reconcile(false);
  },
  resume: (world) => world.suspend(false),
  fail: (world, name) => world.work(name, true),
  see: (world, name) => world.see(name),
  "delete the copy": ({ job, members }, name) => {
    const share = sharesOf(job)?.find(({ member }) => member === name);
    // A copy that worked and goes before the host heard of it is made again: nothing tells it from one that never was.
    const isHeardOf = share !== undefined && hasStarted(share);
    if (isHeardOf || !hasStarted(members[name].copy?.job ?? {})) delete members[name].copy;
  },
  disconnect: ({ members }, name) => {
    if (members[name].state === "usable") members[name].state = "silent";
  },
  connect: ({ members }, name) => {
    if (members[name].state === "silent") members[name].state = "usable";
  },
  "remove the Cluster": ({ members }, name) => {
    members[name].state = "gone";
  },
  refuse: ({ members }, name) => {
    members[name].refuses = true;
  },
  admit: ({ members }, name) => {
    members[name].refuses = false;
  },
};
const OFTEN = ["reconcile", "copy", "work", "see"];

/** Lets all work on without faults, until nothing changes. */
function settle(world: World): void {
  world.suspend(false);
  for (const name of MEMBERS) {
    STEPS.connect?.(world, name);
    STEPS.admit?.(world, name);
  }
  for (let round = 0; round < 15; round += 1) {
    for (const name of MEMBERS) for (const step of ["copy", "work", "see"]) STEPS[step]?.(world, name);
    world.reconcile(false);
    world.check();
  }
}

test("a divided Job never has two copies of a share, and always ends, whatever happens", () => {
  const step = fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...OFTEN) },
    { weight: 1, arbitrary: fc.constantFrom(...Object.keys(STEPS)) },
  );
  // Faults of one member after another are found sooner than those of all.
  const name = fc.oneof(
    { weight: 3, arbitrary: fc.constant(MEMBERS[0]) },
    { weight: 1, arbitrary: fc.constantFrom(...MEMBERS) },
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(step, name), { maxLength: 60 }), (steps) => {
      const world = new World();
      for (const [what, member] of steps) {
        STEPS[what]?.(world, member);
        world.check();
      }
      const isRemoved = MEMBERS.every((name) => world.members[name].state === "gone");
      settle(world);
      expect(isFinished(world.job) || (isRemoved && membersOfJob(world.job).length === 0)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

describe("a divided Job that was suspended, resumed, and fails in one member, is not over", () => {
  /** Returns the world at the end, and the two members with shares. */
  function resumed(): { readonly world: World; readonly failing: Name; readonly other: Name } {
    const world = new World();
    world.reconcile(false);
    const [failing, other] = MEMBERS.filter((name) => membersOfJob(world.job).includes(name));
    if (failing === undefined || other === undefined) throw new Error("the Job has two shares");
    STEPS["suspend everywhere"]?.(world, failing);
    expect(isMarkedTrue(world.job.status, "Suspended")).toBe(true);
    world.suspend(false);
    world.copy(failing);
    world.see(failing);
    return { world, failing, other };
  }

  function fail(world: World, name: Name): void {
    world.work(name, true);
    world.see(name);
    world.reconcile(false);
    expect(isMarkedTrue(world.job.status, "FailureTarget")).toBe(true);
  }

  test("while the other's Job controller has not resumed it", () => {
    const { world, failing, other } = resumed();
    world.copy(other);
    world.see(other);
    fail(world, failing);
    world.copy(other);
    world.workLate(other);
    world.see(other);
    world.reconcile(false);
    world.check();
    settle(world);
    expect(isMarkedTrue(world.job.status, "Failed")).toBe(true);
  });

  test("while the other's resumption is under way", () => {
    const { world, failing, other } = resumed();
    world.copy(other);
    world.work(other, false);
    fail(world, failing);
    world.check();
  });

  test("while the other's member does not answer", () => {
    const { world, failing, other } = resumed();
    world.copy(other);
    world.work(other, false);
    world.members[other].state = "silent";
    fail(world, failing);
    world.check();
  });
});
