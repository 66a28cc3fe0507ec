import { expect, test } from "vitest";
import type { Job, Stored } from "../../../../src/api/kubernetes.ts";
import { type WorkloadFacts, workloadStatus } from "../../../../src/cli/explain/workload.ts";
import { workloadText } from "../../../../src/cli/status/workload-text.ts";
import { pod } from "../../../support/builders/pod.ts";
import { replica, status } from "../explain/workload-given.ts";
import { recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";

test("shows the wanted and the present division, statuses, and why a member would not get the next pod", () => {
  const shown = status(
    { east: {}, west: {} },
    { clusters: { west: { weight: 2 }, east: { weight: 1 } } },
    ["west", "east", "east"],
    3,
  );
  expect(shown).toMatchObject({
    replicas: 3,
    pods: 3,
    rebalance: false,
    onHost: 0,
    pending: [],
    next: "west",
    clusters: [
      {
        cluster: "east",
        wanted: 1,
        has: 2,
        ready: 2,
        statuses: { Running: 2 },
        whyNot: "west is better by legation.dev/scheduling-preferences",
      },
      { cluster: "west", wanted: 2, has: 1, ready: 1, statuses: { Running: 1 } },
    ],
  });
  expect(workloadText(shown, 0, recordedSession().terminal).split("\n")).toEqual([
    "Deployment team/web: 3 wanted, 3 there, 3 ready",
    "CLUSTER  WANTED  HAS  READY  PODS       WHY NOT THE NEXT",
    "east     1       2    2      2 Running  west is better by legation.dev/scheduling-preferences",
    "west     2       1    1      1 Running",
    "rebalance is off: pods that run stay where they are; new ones keep the division",
    "one more pod would go to west",
  ]);
});

test("groups pods without a member by reason, with a line for each member", () => {
  const shown = status({ east: {}, west: {} }, { clusters: {} }, [undefined, "west", undefined], 3);
  expect(shown.pending).toMatchObject([
    {
      pods: ["web-abc-0", "web-abc-2"],
      reason: "NotPlaced",
      message: "east: has 1 of them, its maxReplicas; west: cpu: 8 requested, 4 left",
    },
  ]);
  expect(workloadText(shown, 0, recordedSession().terminal)).toContain(
    "2 pods wait (web-abc-0, …): NotPlaced\n  east: has 1 of them, its maxReplicas\n  west: cpu: 8 requested, 4 left",
  );
});

test("says why pods are not delegated, also by annotations of the workload alone", () => {
  const facts = {
    kind: "Deployment",
    namespace: "team",
    name: "web",
    replicas: 1,
    pods: [pod({ metadata: { namespace: "team" } })],
  };
  const at = Date.parse("2026-01-01T00:00:00Z");
  const shown = workloadStatus(
    { ...facts, metadata: { labels: { "legation.dev/delegate": "true" } } },
    host({ east: {} }),
    at,
  );
  expect(shown.whyOnHost).toContain("legation.dev/delegate is a label there");
  expect(workloadText(shown, 0, recordedSession().terminal)).toContain(
    "1 pod is not delegated: legation.dev/delegate is a label",
  );
  const two = workloadStatus({ ...facts, pods: [...facts.pods, pod({ name: "b", uid: "b" })] }, host({ east: {} }), at);
  expect(workloadText(two, 0, recordedSession().terminal)).toContain("2 pods are not delegated: nothing asks for it");
});

test("shows the Jobs of a CronJob, newest first, with the members of whole ones", () => {
  const made = (
    name: string,
    created: string,
    more: Pick<Job, "status"> = {},
    labels: Record<string, string> = {},
  ): Stored<Job> => ({
    metadata: {
      name,
      namespace: "team",
      uid: name,
      resourceVersion: "1",
      creationTimestamp: created,
      labels,
      annotations: labels["legation.dev/whole"] === undefined ? {} : { "legation.dev/cluster": "west" },
    },
    ...more,
  });
  const complete = { type: "Complete", status: "True" };
  const facts: WorkloadFacts = {
    kind: "CronJob",
    namespace: "team",
    name: "web",
    replicas: 1,
    pods: [],
    jobs: [
      made("web-1", "2026-01-01T00:00:00Z", { status: { succeeded: 1, conditions: [complete] } }),
      made("web-2", "2026-01-01T01:00:00Z", { status: { active: 1 } }, { "legation.dev/whole": "true" }),
    ],
  };
  const shown = workloadStatus(facts, host({ west: {} }), 0);
  const text = workloadText(shown, Date.parse("2026-01-01T02:00:00Z"), recordedSession().terminal);
  const [header, ...rows] = text.slice(text.indexOf("JOB ")).split("\n");
  expect(header).toMatch(/^JOB +STATE +SUCCEEDED +FAILED +WHOLE IN +AGE$/);
  expect(rows[0]).toMatch(/^web-2 +Running +0 +0 +west +60m$/);
  expect(rows[1]).toMatch(/^web-1 +Complete +1 +0 +- +120m$/);
});

test("says that a Job has ended, and where no further pod goes", () => {
  const pods = [replica("web-1", "legation-west", {})];
  const facts: WorkloadFacts = { kind: "Job", namespace: "team", name: "web", replicas: 0, pods, ended: "Complete" };
  const shown = workloadStatus(facts, host({ west: {} }, { proxies: pods }), 0);
  const [heading, ...lines] = workloadText(shown, 0, recordedSession().terminal).split("\n");
  expect(heading).toBe("Job team/web: Complete, 1 pod there");
  expect(lines.join("\n")).not.toContain("one more pod");
});
