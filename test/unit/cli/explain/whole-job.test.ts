import { describe, expect, test } from "vitest";
import type { Job, KubeEvent, Stored } from "../../../../src/api/kubernetes.ts";
import { readWorkload } from "../../../../src/cli/explain/read-workload.ts";
import { type WholeJobFacts, wholeJobStatus } from "../../../../src/cli/explain/whole-job.ts";
import { wholeJobText } from "../../../../src/cli/status/whole-text.ts";
import { jobs } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";

const session = recordedSession();
const STARTED = "2026-01-01T00:00:00Z";
const AT = "2026-01-02T00:00:00Z";
const RUNNING = { startTime: STARTED, active: 5, ready: 4, succeeded: 12, failed: 1 };

function job(member: string | undefined, status?: Job["status"]): Stored<Job> {
  const annotations = member === undefined ? {} : { "legation.dev/cluster": member };
  const labels = { "legation.dev/whole": "true" };
  return {
    metadata: { name: "sum", namespace: "team", uid: "u", resourceVersion: "1", labels, annotations },
    spec: { completions: 20, template: {} },
    ...(status === undefined ? {} : { status }),
  };
}

function event(reason: string, message: string, lastTimestamp = AT): KubeEvent {
  return { metadata: { name: reason }, involvedObject: { kind: "Job" }, reason, message, lastTimestamp };
}

function shown(facts: Partial<WholeJobFacts> & Pick<WholeJobFacts, "job">): string[] {
  return wholeJobText(wholeJobStatus({ told: [], ...facts }), session.terminal).split("\n");
}

const READY = host({ west: {}, east: {} }).clusters;
const lost = { type: "Ready", status: "False" as const, reason: "R", message: "it hangs", lastTransitionTime: AT };
const LOST = host({ west: { status: { conditions: [lost] } } }).clusters;

describe("the status of a whole Job", () => {
  test("has the member, and the counters that it reported", () => {
    expect(shown({ job: job("west", RUNNING), clusters: READY })).toEqual([
      "Job team/sum: whole Job, in west with its pods",
      `started ${STARTED}: 12 of 20 succeeded, 1 failed, 5 active (4 ready)`,
    ]);
  });

  test("of a divided one has each member's share, and its troubles", () => {
    const part = { weight: 1, minReplicas: 0 };
    const complete = { succeeded: 8, conditions: [{ type: "Complete", status: "True" }] };
    const record = {
      west: { ...part, completions: 12, status: RUNNING },
      east: { ...part, completions: 8, status: complete },
    };
    const { metadata, ...rest } = job("west,east", { ...RUNNING, succeeded: 20 });
    const annotations = { ...metadata.annotations, "legation.dev/shares": JSON.stringify(record) };
    const divided = {
      ...rest,
      spec: { completions: 20, parallelism: 6, template: {} },
      metadata: { ...metadata, annotations },
    };
    expect(shown({ job: divided, clusters: LOST })).toEqual([
      "Job team/sum: whole Job, divided over west, east with its pods",
      `started ${STARTED}: 20 of 20 succeeded, 1 failed, 5 active (4 ready)`,
      "CLUSTER  SUCCEEDED  FAILED  ACTIVE  READY  STATE",
      "west     12 of 12   1       5 of 6  4      Running",
      "east     8 of 8     0       0 of 0  0      Complete",
      expect.stringMatching(/^trouble: west is not ready: it hangs/),
      expect.stringMatching(/legation unjoin west --force/),
    ]);
  });

  test("has the last reason of each member while none takes it", () => {
    const told = [event("NotPlaced", "west: old", STARTED), event("NotPlaced", "east: Full; west: cordoned")];
    expect(shown({ job: job(undefined), told })).toEqual([
      "Job team/sum: whole Job, in no member yet",
      "no member has it",
      `waits: NotPlaced (${AT})`,
      "  east: Full",
      "  west: cordoned",
    ]);
  });

  test("leaves out why it waited once it has started", () => {
    const told = [event("NotPlaced", "west: cordoned")];
    expect(shown({ job: job("west", RUNNING), told, clusters: READY }).join()).not.toContain("NotPlaced");
  });

  test("has the conditions that are True, with their reason", () => {
    const failed = { type: "Failed", status: "True", reason: "BackoffLimitExceeded", message: "too often" };
    const conditions = [
      { type: "Suspended", status: "False", lastTransitionTime: AT },
      { ...failed, lastTransitionTime: AT },
    ];
    expect(shown({ job: job("west", { startTime: STARTED, conditions }) }).slice(2)).toEqual([
      `Failed since ${AT}: BackoffLimitExceeded: too often`,
    ]);
  });

  test.each([
    ["is lost", LOST, /^trouble: west is not ready: it hangs; the Job may run on there/],
    ["was removed", [], /^trouble: Cluster west, which had the Job, was removed/],
  ])("says so when its member %s", (_, clusters, words) => {
    expect(shown({ job: job("west", RUNNING), clusters })[2]).toMatch(words);
  });

  test("says when the host refuses the status of the copy", () => {
    const told = [event("StatusRefused", "this cluster refuses the status")];
    expect(shown({ job: job("west", RUNNING), told, clusters: READY })[2]).toBe(
      `trouble: StatusRefused: this cluster refuses the status (since ${AT})`,
    );
  });
});

test("status of a Job with the label reads no pods", async () => {
  const cluster = new MemoryCluster("host", "host-1");
  cluster.put(jobs, { apiVersion: "batch/v1", kind: "Job", ...job("west", RUNNING) });
  const workload = { kind: "Job", namespace: "team", name: "sum" } as const;
  const found = await readWorkload(cluster.client, workload, session.signal);
  expect(found).toMatchObject({ whole: true, cluster: "west", succeeded: 12, completions: 20 });
});
