import { expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { KubeNode, Stored } from "../../../../src/api/kubernetes.ts";
import { countedPod } from "../../../../src/cli/explain/host.ts";
import { memberRows, podRow } from "../../../../src/cli/ui/rows.ts";
import { endedStatus, proxyPod, runningStatus } from "../../../support/builders/pod.ts";

test("names the Deployment of a ReplicaSet's pod, its member and its node there", () => {
  const row = podRow(
    proxyPod({
      metadata: {
        labels: { "pod-template-hash": "7d9" },
        annotations: {
          "legation.dev/cluster": "west",
          "legation.dev/member-node": "w-1",
          "legation.dev/delegate-uid": "d",
        },
        ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-7d9", uid: "rs", controller: true }],
      },
      spec: { nodeName: "legation-west" },
      status: runningStatus(),
    }),
  );
  expect(row).toMatchObject({
    workload: "Deployment/web",
    member: "west",
    node: "w-1",
    state: "running",
    ready: "1/1",
  });
});

test("says why a pod has no member", () => {
  const message = "west: no node has room; east: its labels do not match";
  const row = podRow(
    proxyPod({
      status: {
        phase: "Pending",
        conditions: [{ type: "PodScheduled", status: "False", reason: "NotPlaced", message }],
      },
    }),
  );
  expect(row).toMatchObject({ state: "waiting", member: undefined, why: message });
});

test.each<[string, Parameters<typeof proxyPod>[0], string | undefined]>([
  [
    "no controller has seen",
    {},
    "no controller has reported on it yet: it is being placed, or `legation controller` does not run",
  ],
  ["gates hold back", { spec: { schedulingGates: [{ name: "a.io/b" }] } }, "waits for its scheduling gates: a.io/b"],
  ["has failed", { status: endedStatus(3) }, "failed: main: exit code 3 (Error)"],
  ["runs", { spec: { nodeName: "legation-west" }, status: runningStatus() }, undefined],
])("says why a pod that %s is not running", (_, parts, why) => {
  expect(podRow(proxyPod(parts)).why).toBe(why);
});

const cluster = (name: string, status: Cluster["status"]): Stored<Cluster> => ({
  metadata: { name, uid: name, resourceVersion: "1", labels: { region: "eu" } },
  spec: { credentialsSecret: { name: "s" }, taints: [{ key: "gpu", value: "only", effect: "NoSchedule" }] },
  ...(status === undefined ? {} : { status }),
});
const ready = {
  type: "Ready",
  status: "True",
  reason: "R",
  message: "m",
  lastTransitionTime: "2026-01-01T00:00:00Z",
} as const;

test("sums up a member's room: used by this host, by others, and extended resources", () => {
  const status = {
    allocatable: { cpu: "8", memory: "1Ki", pods: "10", "nvidia.com/gpu": "4", "ephemeral-storage": "1Gi" },
    requestedByOthers: { cpu: "1500m" },
    conditions: [ready],
  };
  const requests = { cpu: "500m", "nvidia.com/gpu": "1" };
  const running = proxyPod({
    spec: { nodeName: "legation-west", containers: [{ name: "main", resources: { requests } }] },
  });
  const ended = proxyPod({ uid: "2", spec: { nodeName: "legation-west" }, status: endedStatus(0) });
  const [row] = memberRows([cluster("west", status)], [], [running, ended].map(countedPod));
  expect(row?.use).toEqual([
    { resource: "cpu", allocatable: 8, ours: 0.5, others: 1.5 },
    { resource: "memory", allocatable: 1024, ours: 0, others: 0 },
    { resource: "pods", allocatable: 10, ours: 1, others: 0 },
    { resource: "nvidia.com/gpu", allocatable: 4, ours: 1, others: 0 },
  ]);
  expect(row).toMatchObject({
    pods: { unfinished: 1 },
    labels: { region: "eu" },
    taints: ["gpu=only:NoSchedule"],
    ready: "True",
  });
});

test("shows a cordoned member, and the reason of one that is not ready, in the order of names", () => {
  const node: Stored<KubeNode> = {
    metadata: { name: "legation-west", uid: "n", resourceVersion: "1" },
    spec: { unschedulable: true },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  };
  const lost = { conditions: [{ ...ready, status: "False", message: "its API server does not answer" }] } as const;
  const rows = memberRows([cluster("west", { conditions: [ready] }), cluster("east", lost)], [node], []);
  expect(rows).toMatchObject([
    { name: "east", ready: "False", reason: "its API server does not answer", since: ready.lastTransitionTime },
    { name: "west", isCordoned: true, use: [] },
  ]);
});
