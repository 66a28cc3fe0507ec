import { describe, expect, test } from "vitest";
import type { ClusterCondition } from "../../../../src/api/cluster-status.ts";
import type { KubeNode, PodSpec, Stored } from "../../../../src/api/kubernetes.ts";
import { hostStatus } from "../../../../src/cli/explain/host.ts";
import { endedStatus, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { cluster, ready } from "./reported-clusters.ts";

const released: ClusterCondition = {
  type: "Released",
  status: "False",
  reason: "PodsRemain",
  message: "1 pod is bound to Node legation-west",
  lastTransitionTime: "2026-01-01T00:30:00Z",
};

const node = (name: string, unschedulable = false, state = "True"): Stored<KubeNode> => ({
  metadata: { name, uid: `uid-of-${name}`, resourceVersion: "1" },
  spec: { unschedulable },
  status: { conditions: [{ type: "Ready", status: state }] },
});

const spec = (nodeName: string, cpu: string, memory = "1Gi"): Partial<PodSpec> => ({
  nodeName,
  containers: [{ name: "main", resources: { requests: { cpu, memory } } }],
});

describe("the status of all members", () => {
  test("takes only this host's unfinished pods from the free room", () => {
    const { clusters } = hostStatus({
      clusters: [cluster("west")],
      nodes: [node("legation-west")],
      proxies: [
        proxyPod({ spec: spec("legation-west", "1500m"), status: runningStatus() }),
        proxyPod({ spec: spec("legation-west", "500m") }),
        proxyPod({ spec: spec("legation-west", "4"), status: endedStatus(0) }),
        proxyPod({ spec: spec("legation-east", "4"), status: runningStatus() }),
      ],
    });
    expect(clusters).toMatchObject([
      { cpu: { free: 6, allocatable: 8 }, memory: { free: 14 * 2 ** 30 }, pods: { running: 1, unfinished: 2 } },
    ]);
  });

  test("is what the controller wrote, once pods are too many to be counted one by one", () => {
    const summed = { pods: 5_001, unfinishedPods: 5_000, runningPods: 4_999, requested: { cpu: "6", memory: "8Gi" } };
    const many = cluster("west", { status: { ...ready("True"), ...summed } });
    const unplaced = proxyPod({ spec: {} });
    expect(hostStatus({ clusters: [many, cluster("east")], nodes: [], proxies: [unplaced] })).toMatchObject({
      clusters: [
        { name: "east", pods: { running: 0, unfinished: 0 } },
        {
          cpu: { free: 2, allocatable: 8 },
          memory: { free: 8 * 2 ** 30 },
          pods: { running: 4_999, unfinished: 5_000 },
        },
      ],
      waiting: { unplaced: 1, gated: 0 },
    });
  });

  test("has no free room, and not less, while its nodes are not ready and their pods stay", () => {
    const none = { ...ready("True"), allocatable: { cpu: "0", memory: "0" } };
    const [west] = hostStatus({
      clusters: [cluster("west", { status: none })],
      nodes: [node("legation-west")],
      proxies: [proxyPod({ spec: spec("legation-west", "1500m"), status: runningStatus() })],
    }).clusters;
    expect(west).toMatchObject({ cpu: { free: 0, allocatable: 0 }, memory: { free: 0, allocatable: 0 } });
  });

  test.each([
    ["ready", cluster("west"), false, "True", undefined],
    ["ready but cordoned", cluster("west"), true, "True", "cordoned: takes no new pods"],
    [
      "not ready",
      cluster("west", { status: ready("False", "connection refused") }),
      false,
      "False",
      "connection refused",
    ],
    ["being removed", cluster("west", { deleted: true }), true, "True", "is being removed"],
    [
      "being removed, and waits",
      cluster("west", { deleted: true, status: { conditions: [...(ready("True").conditions ?? []), released] } }),
      true,
      "True",
      "is being removed: 1 pod is bound to Node legation-west",
    ],
  ])("shows a member that is %s", (_case, one, cordoned, expected, reason) => {
    const [status] = hostStatus({ clusters: [one], nodes: [node("legation-west", cordoned)], proxies: [] }).clusters;
    expect(status?.ready).toBe(expected);
    expect(status?.reason).toBe(reason);
  });

  test.each([
    ["True", "Unknown", "its node legation-west is not Ready, so what is shown may be old"],
    ["False", "False", "connection refused"],
  ] as const)("shows a member last reported as %s, whose node's Lease has expired, as %s", (last, shown, reason) => {
    const one = cluster("west", { status: ready(last, "connection refused") });
    const nodes = [node("legation-west", true, "Unknown")];
    const [status] = hostStatus({ clusters: [one], nodes, proxies: [] }).clusters;
    expect(status).toMatchObject({ ready: shown, reason: expect.stringContaining(reason) });
  });

  test("points to the controller where no controller has reported on a member", () => {
    const { status: _none, ...silent } = cluster("west");
    const [status] = hostStatus({ clusters: [silent], nodes: [], proxies: [] }).clusters;
    expect(status).toMatchObject({ ready: "Unknown", reason: expect.stringContaining("legation controller") });
  });

  test("counts pods without a member, those behind scheduling gates apart", () => {
    const gated = { schedulingGates: [{ name: "kueue" }] };
    const proxies = [proxyPod(), proxyPod(), proxyPod({ spec: gated }), proxyPod({ status: endedStatus(1) })];
    expect(hostStatus({ clusters: [], nodes: [], proxies }).waiting).toEqual({ unplaced: 2, gated: 1 });
  });
});
