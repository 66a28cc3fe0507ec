import { describe, expect, test } from "vitest";
import type { KubeEvent, Pod, PodStatus, Stored } from "../../../../src/api/kubernetes.ts";
import { isMakerOf } from "../../../../src/cli/plan/controller-pods.ts";
import { type Trouble, type TroubleFacts, troublesOf } from "../../../../src/cli/status/trouble.ts";
import { containerStatus, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { host, type MemberParts } from "../plan/host.ts";

const lost: MemberParts = {
  status: {
    conditions: [
      {
        type: "Ready",
        status: "False",
        reason: "ProbeFailed",
        message: "connect ECONNREFUSED",
        lastTransitionTime: "2026-01-01T10:00:00Z",
      },
    ],
  },
};

function replica(name: string, cluster: string, status: PodStatus = runningStatus(), parts: object = {}): Stored<Pod> {
  const annotations = { "legation.dev/cluster": cluster };
  const tolerations = [
    { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
  ];
  const spec = { nodeName: `legation-${cluster}`, tolerations };
  return proxyPod({ name, uid: name, metadata: { annotations, ...parts }, spec, status });
}

function troubles(pods: readonly Stored<Pod>[], parts: Partial<TroubleFacts> = {}, west: MemberParts = {}): Trouble[] {
  const { clusters } = host({ east: {}, west });
  return troublesOf({ namespace: "shop", replicas: pods.length, pods, clusters, refusals: [], ...parts });
}

function refusal(at: string, message: string): KubeEvent {
  const involvedObject = { kind: "ReplicaSet", name: "web-abc" };
  return { metadata: {}, involvedObject, message, lastTimestamp: at, reason: "FailedCreate" };
}

const waiting = (reason: string, restartCount = 0): PodStatus => ({
  phase: "Pending",
  containerStatuses: [containerStatus({ restartCount, state: { waiting: { reason, message: "Back-off" } } })],
});

describe("of a workload it is told", () => {
  test("nothing when all is well, or begins", () => {
    expect(troubles([replica("a", "west"), replica("b", "east", waiting("ContainerCreating"))])).toEqual([]);
  });

  test("which member is lost, how many pods that concerns, and what becomes of them", () => {
    const patient = replica("c", "west");
    const forever = { ...patient, spec: { containers: [], ...patient.spec, tolerations: [{ operator: "Exists" }] } };
    expect(troubles([replica("a", "west"), replica("b", "west"), replica("d", "east")], {}, lost)).toEqual([
      {
        what: "west is lost since 2026-01-01T10:00:00Z: connect ECONNREFUSED; its 2 pods may run on there, and what is shown of them is old",
        remedy: "they are replaced elsewhere 300 s after their node has the taint node.kubernetes.io/unreachable",
      },
    ]);
    expect(troubles([replica("a", "west"), forever], {}, lost)[0]?.remedy).toContain("; 1 of them waits for west");
    expect(troubles([forever, forever], {}, lost)[0]?.remedy).toContain("they wait for west to come back");
    expect(troubles([forever], {}, lost)).toEqual([
      {
        what: "west is lost since 2026-01-01T10:00:00Z: connect ECONNREFUSED; its pod c may run on there, and what is shown of it is old",
        remedy: "it waits for west to come back, as its tolerations say (legation.dev/failover)",
      },
    ]);
    expect(troubles([replica("d", "east")], {}, lost)).toEqual([]);
  });

  test("that a StatefulSet does not replace its pods elsewhere", () => {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "s", controller: true }];
    const [a, b] = ["db-0", "db-1"].map((name) => replica(name, "west", runningStatus(), { ownerReferences }));
    if (a === undefined || b === undefined) throw new Error("there are two");
    expect(troubles([a, b], {}, lost)[0]?.remedy).toBe(
      "they are deleted 300 s after their node has the taint node.kubernetes.io/unreachable, and then stay Terminating; " +
        "StatefulSet db makes them anew only when west is ready again, its node is tainted out of service, or they are deleted by force",
    );
  });

  test("which pods cannot end there, and how to let them go", () => {
    const ending = replica("a", "west", runningStatus(), { deletionTimestamp: "2026-01-01T10:06:00Z" });
    expect(troubles([ending], {}, lost)).toEqual([
      {
        what: expect.stringContaining("pod a there cannot end before west is ready again"),
        remedy: "where it is gone for good: kubectl -n shop delete pod a --grace-period=0 --force",
      },
    ]);
  });

  test("why pods are not created, by the last word, and only while some are missing", () => {
    const refusals = [
      refusal("2026-01-01T10:00:00Z", "earlier"),
      refusal("2026-01-01T10:01:00Z", "exceeded quota: team"),
    ];
    expect(troubles([replica("a", "west")], { refusals, replicas: 3 })).toEqual([
      { what: "2 more cannot be created (ReplicaSet web-abc, 2026-01-01T10:01:00Z): exceeded quota: team" },
    ]);
    expect(troubles([replica("a", "west")], { refusals })).toEqual([]);
  });

  test("which pods do not start or have failed, those alike together, and where to look", () => {
    const exited: PodStatus = {
      phase: "Failed",
      containerStatuses: [containerStatus({ state: { terminated: { exitCode: 137, reason: "OOMKilled" } } })],
    };
    const evicted: PodStatus = { phase: "Failed", reason: "Evicted", message: "the node was low on memory" };
    const found = troubles([
      replica("a", "west", waiting("ImagePullBackOff")),
      replica("b", "west", waiting("ImagePullBackOff")),
      replica("c", "east", waiting("CrashLoopBackOff", 7)),
      replica("d", "east", exited),
      replica("e", "east", evicted),
    ]);
    expect(found).toEqual([
      {
        what: "2 pods do not run in west: main waits: ImagePullBackOff: Back-off",
        remedy: "see legation status pod a -n shop",
      },
      {
        what: "1 pod does not run in east: main waits: CrashLoopBackOff: Back-off (7 restarts)",
        remedy: "see legation status pod c -n shop",
      },
      {
        what: "1 pod has failed in east: main ended with exit code 137 (OOMKilled)",
        remedy: "see legation status pod d -n shop",
      },
      {
        what: "1 pod has failed in east: Evicted: the node was low on memory",
        remedy: "see legation status pod e -n shop",
      },
    ]);
  });
});

test.each([
  ["Deployment", { kind: "ReplicaSet", name: "web-6d4cf56db6" }, true],
  ["Deployment", { kind: "ReplicaSet", name: "web-api-6d4cf56db6" }, false],
  ["Deployment", { kind: "Job", name: "web-1" }, false],
  ["CronJob", { kind: "Job", name: "web-29000000" }, true],
  ["CronJob", { kind: "Job", name: "web-once" }, false],
  ["StatefulSet", { kind: "StatefulSet", name: "web" }, true],
  ["Job", { kind: "Job", name: "web-2" }, false],
] as const)("of a %s named web, %j makes pods: %s", (kind, maker, makes) => {
  expect(isMakerOf({ kind, namespace: "shop", name: "web" }, maker)).toBe(makes);
});
