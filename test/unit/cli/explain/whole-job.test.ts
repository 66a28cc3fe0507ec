import { describe, expect, test } from "vitest";
import type { Job, KubeEvent, Stored } from "../../../../src/api/kubernetes.ts";
import { readWorkload } from "../../../../src/cli/explain/read-workload.ts";
import { jobs } from "../../../../src/kube/resources.ts";
import { JOBS } from "../../../../src/whole/jobs/type.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";
import { SINCE, shown } from "./shown-whole.ts";

const RUNNING = { startTime: SINCE, active: 5, ready: 4, succeeded: 12, failed: 1 };
const EARLIER = "2026-01-01T00:00:00Z";
const LATER = "2099-01-01T00:00:00Z";

function job(member: string | undefined, status?: Job["status"]): Stored<Job> {
  const annotations = member === undefined ? {} : { "legation.dev/cluster": member };
  const labels = { "legation.dev/whole": "true" };
  return {
    metadata: { name: "sum", namespace: "team", uid: "u", resourceVersion: "1", labels, annotations },
    spec: { completions: 20, parallelism: 6, template: {} },
    ...(status === undefined ? {} : { status }),
  };
}

/** Returns the Job, divided over west, which runs 12 of the completions, and east, which has done its 8. */
function divided(status: Job["status"], ofWest: Job["status"] = RUNNING): Stored<Job> {
  const part = { weight: 1, minReplicas: 0 };
  const complete = { succeeded: 8, conditions: [{ type: "Complete", status: "True" }] };
  const record = {
    west: { ...part, completions: 12, status: ofWest },
    east: { ...part, completions: 8, status: complete },
  };
  const { metadata, ...rest } = job("west,east", status);
  const annotations = { ...metadata.annotations, "legation.dev/shares": JSON.stringify(record) };
  return { ...rest, metadata: { ...metadata, annotations } };
}

function event(reason: string, message: string, lastTimestamp = SINCE): KubeEvent {
  return { metadata: { name: reason }, involvedObject: { kind: "Job" }, reason, message, lastTimestamp };
}

function shownJob(object: Stored<Job>, { told = [], members = host({ west: {}, east: {} }) }: Partial<Seen> = {}) {
  return shown({ object: { ...object, kind: "Job" }, builtIn: JOBS, type: undefined, told, host: members });
}

interface Seen {
  readonly told: readonly KubeEvent[];
  readonly members: ReturnType<typeof host>;
}

const lost = { type: "Ready", status: "False" as const, reason: "R", message: "it hangs", lastTransitionTime: SINCE };
const LOST = host({ west: { status: { conditions: [lost] } }, east: {} });

describe("the status of a whole Job", () => {
  test("has the member, and the counters that it reported", () => {
    expect(shownJob(job("west", RUNNING))).toEqual([
      "Job team/sum: whole: 12 of 20 succeeded, 1 failed, 5 active",
      "CLUSTER  STATE    SUCCEEDED  FAILED  ACTIVE  READY  SINCE  WHY",
      "west     Running  12 of 20   1       5 of 6  4      60s",
    ]);
  });

  test("of a divided one has each member's share, and its troubles", () => {
    const text = shownJob(divided({ ...RUNNING, succeeded: 20 }), { members: LOST });
    expect(text).toEqual([
      "Job team/sum: whole: 20 of 20 succeeded, 1 failed, 5 active",
      "CLUSTER  STATE         SUCCEEDED  FAILED  ACTIVE  READY  SINCE  WHY",
      "east     Complete      8 of 8     0       0 of 0  0      -",
      "west     NotReachable  12 of 12   1       5 of 6  4      60s    it is not ready: it hangs; it was Running",
      expect.stringMatching(/^trouble: west is not ready: it hangs; the Job may run on there/),
      expect.stringMatching(/it does not move; .*legation unjoin west --force/),
    ]);
  });

  test("has the last reason of each member while none takes it", () => {
    const told = [event("NotPlaced", "west: old", EARLIER), event("NotPlaced", "east: Full; west: cordoned")];
    expect(shownJob(job(undefined), { told })).toEqual([
      "Job team/sum: whole, in no member",
      "waits: NotPlaced",
      "  east: Full",
      "  west: cordoned",
    ]);
  });

  test.each<[string, Stored<Job>, KubeEvent[]]>([
    ["has started", job("west", RUNNING), []],
    ["has been placed since", job("west"), [event("Placed", "west has the Job")]],
    ["has ended", job(undefined, { conditions: [{ type: "Failed", status: "True" }] }), []],
  ])("leaves out why it waited once it %s", (_, one, since) => {
    const told = [event("NotPlaced", "west: cordoned", EARLIER), ...since];
    expect(shownJob(one, { told }).join()).not.toContain("NotPlaced");
  });

  const SUSPENDED = { startTime: EARLIER, conditions: [{ type: "Suspended", status: "True" }] };
  test.each<[string, Stored<Job>, KubeEvent[]]>([
    ["refused in the second in which it was placed", job("west"), [event("Placed", "west has the Job")]],
    ["taken back, and told of the same reason before", job(undefined), [event("Placed", "no member has it", LATER)]],
    ["suspended by its member", job("west", SUSPENDED), []],
  ])("says why a Job waits that is %s", (_, one, others) => {
    const told = [...others, event("NotPlaced", "west: a quota")];
    expect(shownJob(one, { told }).join()).toContain("waits: NotPlaced,  west: a quota");
  });

  test("gives no old reason for a Job that its author suspended", () => {
    const one = job("west", SUSPENDED);
    const suspended = { ...one, spec: { template: {}, ...one.spec, suspend: true } };
    expect(shownJob(suspended, { told: [event("NotPlaced", "west: a quota")] }).join()).not.toContain("NotPlaced");
  });

  test("has no total of successes where one ends the Job", () => {
    const one = job("west", RUNNING);
    expect(shownJob({ ...one, spec: { template: {}, parallelism: 6 } })[2]).toMatch(/^west +Running +12 +1 +5 of 6/);
  });

  test("says why a share is not begun while others run", () => {
    const told = [event("NotPlaced", "west: a quota")];
    expect(shownJob(divided({ startTime: SINCE }, {}), { told }).slice(-2)).toEqual([
      "waits: NotPlaced",
      "  west: a quota",
    ]);
  });

  test("has its conditions with their reason, and when its member came into its state", () => {
    const failed = { type: "Failed", status: "True", reason: "BackoffLimitExceeded", message: "too often" };
    const conditions = [{ ...failed, lastTransitionTime: SINCE }];
    expect(shownJob(job("west", { startTime: EARLIER, conditions }), { members: LOST }).slice(2)).toEqual([
      "west     Failed  0 of 20    0       0 of 6  0      60s",
      "Failed is True (BackoffLimitExceeded): too often",
    ]);
  });

  test("says so when its member was removed, and what becomes of it", () => {
    expect(shownJob(job("west", RUNNING), { members: host({}) }).slice(2)).toEqual([
      "west     NotReachable  12 of 20   1       5 of 6  4      60s    its Cluster was removed; it was Running",
      "trouble: Cluster west, which had the Job, was removed: the controller ends the Job as Failed",
    ]);
  });

  test("says when the host refuses the status of the copy, until the Job has ended", () => {
    const told = [event("StatusRefused", "this cluster refuses the status")];
    const complete = { ...RUNNING, conditions: [{ type: "Complete", status: "True" }] };
    expect(shownJob(job("west", complete), { told }).join()).not.toContain("StatusRefused");
    expect(shownJob(job("west", RUNNING), { told }).at(-1)).toBe(
      `trouble: StatusRefused: this cluster refuses the status (since ${SINCE})`,
    );
  });
});

test("status of a Job with the label reads no pods", async () => {
  const cluster = new MemoryCluster("host", "host-1");
  cluster.put(jobs, { apiVersion: "batch/v1", kind: "Job", ...job("west", RUNNING) });
  const workload = { kind: "Job", namespace: "team", name: "sum" } as const;
  const found = await readWorkload(cluster.client, workload, recordedSession().signal);
  const counts = { succeeded: [12, 20], failed: [1], active: [5, 6], ready: [4] };
  expect(found).toMatchObject({ whole: true, members: [{ cluster: "west", counts }] });
});
