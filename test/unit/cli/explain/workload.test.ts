import { expect, test } from "vitest";
import type { Job, ObjectMeta, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { type WorkloadFacts, type WorkloadStatus, workloadStatus } from "../../../../src/cli/explain/workload.ts";
import { workloadText } from "../../../../src/cli/status/workload-text.ts";
import { pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { recordedSession } from "../session.ts";
import { host, type MemberParts } from "../simulation/host.ts";

const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-abc", uid: "rs", controller: true };

function replica(
  name: string,
  node: string | undefined,
  annotations: Record<string, string>,
  extra: object = {},
): Stored<Pod> {
  const metadata: Partial<ObjectMeta> = {
    annotations,
    ownerReferences: [owner],
    labels: { "pod-template-hash": "abc" },
    ...extra,
  };
  return proxyPod({
    name,
    uid: name,
    metadata,
    spec: node === undefined ? {} : { nodeName: node },
    status: node === undefined ? { phase: "Pending" } : runningStatus(),
  });
}

function status(
  members: Record<string, MemberParts>,
  preferences: object,
  places: (string | undefined)[],
  replicas: number,
  more: Record<string, string> = {},
): WorkloadStatus {
  const annotations = { "legation.dev/scheduling-preferences": JSON.stringify(preferences), ...more };
  const pods = places.map((place, index) => {
    const proxy = replica(`web-abc-${index}`, place === undefined ? undefined : `legation-${place}`, annotations);
    if (place !== undefined) return proxy;
    const message = "east: has 1 of them, its maxReplicas; west: cpu: 8 requested, 4 left";
    const condition = { type: "PodScheduled", status: "False", reason: "NotPlaced", message };
    return { ...proxy, status: { phase: "Pending", conditions: [condition] } };
  });
  const next = replica("web-abc-next", undefined, annotations);
  const facts = { kind: "Deployment", namespace: "team", name: "web", replicas, pods, next };
  return workloadStatus(facts, host(members, { proxies: pods }), Date.parse("2026-01-01T00:00:00Z"));
}

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

test("counts pods that a member has no room for, and gives them to others", () => {
  const small = { status: { allocatable: { cpu: "16", memory: "64Gi", pods: "1" } } };
  const { clusters } = status({ east: {}, west: small }, { clusters: {} }, ["west", "east", "east"], 4);
  expect(clusters).toMatchObject([
    { cluster: "east", wanted: 3, has: 2 },
    { cluster: "west", wanted: 1, overflow: 1, has: 1, whyNot: "pods: 1 requested, 0 left" },
  ]);
});

test.each([
  ["cordoned", { node: { unschedulable: true } }],
  ["lost", { status: { conditions: [] } }],
])("divides the rest over the other members where one is %s", (_, closed: MemberParts) => {
  const wanted = (replicas: number): unknown =>
    status({ east: closed, west: {} }, { clusters: {} }, ["east", "west", "east", "west"], replicas).clusters;
  expect(wanted(4)).toMatchObject([
    { cluster: "east", wanted: 2, has: 2 },
    { cluster: "west", wanted: 2, has: 2 },
  ]);
  expect(wanted(6)).toMatchObject([{ wanted: 2 }, { wanted: 4 }]);
  expect(wanted(1)).toMatchObject([{ wanted: 2 }, { wanted: 0 }]);
});

test("counts a member's room by what pods request there", () => {
  const members = { east: { status: { allocatable: { cpu: "4", memory: "64Gi", pods: "100" } } }, west: {} };
  const patch = [{ op: "add", path: "/spec/containers/0/resources", value: { requests: { cpu: "4" } } }];
  const overrides = { "legation.dev/overrides": JSON.stringify([{ clusters: ["east"], patch }]) };
  const wanted = (more?: Record<string, string>): unknown =>
    status(members, { clusters: {} }, ["west", "west", "west", "west"], 4, more).clusters.map((each) => each.wanted);
  expect(wanted()).toEqual([2, 2]);
  expect(wanted(overrides)).toEqual([1, 3]);
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

test("shows no division that the workload does not ask for, and counts pods of the host", () => {
  const pods = [pod({ metadata: { ownerReferences: [owner] } }), replica("gated", undefined, {}, {})];
  const facts = { kind: "Deployment", namespace: "team", name: "web", replicas: 2, pods };
  const shown = workloadStatus(facts, host({ west: {} }), 0);
  expect(shown.rebalance).toBeUndefined();
  expect(shown).toMatchObject({ onHost: 1, pending: [{ pods: ["gated"], reason: "NotPlaced" }] });
  expect(shown.clusters).toEqual([{ cluster: "west", has: 0, ready: 0, statuses: {} }]);
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

test("says when the annotations of a workload are not in its pod template", () => {
  const metadata = { annotations: { "legation.dev/delegate": "true" } };
  const pods = [pod({ metadata: { namespace: "team" } })];
  const facts = { kind: "Deployment", namespace: "team", name: "web", replicas: 1, pods, metadata, template: {} };
  expect(workloadStatus(facts, host({ east: {} }), 0).whyOnHost).toContain("kubectl rollout restart deployment web");
});

test("does not count pods in overflow mode on the host as not delegated", () => {
  const marked = { labels: { "legation.dev/proxy": "overflow" } };
  const pods = [
    pod({ name: "a", metadata: marked, spec: { nodeName: "n1" } }),
    pod({ name: "b", metadata: marked, spec: { nodeName: "n1" } }),
    pod({ name: "c" }),
  ];
  const facts = { kind: "Deployment", namespace: "team", name: "web", replicas: 3, pods };
  const shown = workloadStatus(facts, host({ east: {} }), 0);
  expect(shown).toMatchObject({ onHost: 3, notDelegated: 1 });
  const text = workloadText(shown, 0, recordedSession().terminal);
  expect(text).toContain("2 pods in overflow mode are this cluster's so far\n1 pod is not delegated: nothing asks");
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

test("counts the pods of a member named like a field of every object", () => {
  const shown = status({ constructor: {}, west: {} }, { clusters: { "*": { weight: 1 } } }, ["constructor", "west"], 2);
  expect(shown.clusters).toMatchObject([
    { cluster: "constructor", wanted: 1, has: 1, overflow: undefined },
    { cluster: "west", wanted: 1, has: 1, overflow: undefined },
  ]);
  const empty = status({ constructor: {} }, { clusters: { "*": { weight: 1 } } }, [], 1);
  expect(empty.clusters).toMatchObject([{ cluster: "constructor", has: 0, overflow: undefined }]);
});
