import { expect, test } from "vitest";
import { workloadStatus } from "../../../../src/cli/explain/workload.ts";
import { workloadText } from "../../../../src/cli/status/workload-text.ts";
import { pod } from "../../../support/builders/pod.ts";
import { recordedSession } from "../session.ts";
import { host, type MemberParts } from "../simulation/host.ts";
import { owner, replica, status } from "./workload-given.ts";

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

test("shows no division that the workload does not ask for, and counts pods of the host", () => {
  const pods = [pod({ metadata: { ownerReferences: [owner] } }), replica("gated", undefined, {}, {})];
  const facts = { kind: "Deployment", namespace: "team", name: "web", replicas: 2, pods };
  const shown = workloadStatus(facts, host({ west: {} }), 0);
  expect(shown.rebalance).toBeUndefined();
  expect(shown).toMatchObject({ onHost: 1, pending: [{ pods: ["gated"], reason: "NotPlaced" }] });
  expect(shown.clusters).toEqual([{ cluster: "west", has: 0, ready: 0, statuses: {} }]);
});

test("says when the annotations of a workload are not in its pod template", () => {
  const metadata = { annotations: { "legation.dev/delegate": "true" } };
  const pods = [pod({ metadata: { namespace: "team" } })];
  const facts = { kind: "Deployment", namespace: "team", name: "web", replicas: 1, pods, metadata, template: {} };
  expect(workloadStatus(facts, host({ east: {} }), 0).whyOnHost).toContain("kubectl annotate deployment web");
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

test("counts the pods of a member named like a field of every object", () => {
  const shown = status({ constructor: {}, west: {} }, { clusters: { "*": { weight: 1 } } }, ["constructor", "west"], 2);
  expect(shown.clusters).toMatchObject([
    { cluster: "constructor", wanted: 1, has: 1, overflow: undefined },
    { cluster: "west", wanted: 1, has: 1, overflow: undefined },
  ]);
  const empty = status({ constructor: {} }, { clusters: { "*": { weight: 1 } } }, [], 1);
  expect(empty.clusters).toMatchObject([{ cluster: "constructor", has: 0, overflow: undefined }]);
});
