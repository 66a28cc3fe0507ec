import { describe, expect, test } from "vitest";
import type { KubeEvent, Pod, PodStatus, Stored } from "../../../../src/api/kubernetes.ts";
import type { Trouble } from "../../../../src/cli/explain/model.ts";
import { type TroubleFacts, troublesOf } from "../../../../src/cli/explain/trouble.ts";
import { containerStatus, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { host, type MemberParts } from "../simulation/host.ts";

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
  return troublesOf({ namespace: "shop", replicas: pods.length, pods, ...parts }, host({ east: {}, west }));
}

function refusal(at: string, message: string): KubeEvent {
  const involvedObject = { kind: "ReplicaSet", name: "web-abc" };
  return { metadata: {}, involvedObject, message, lastTimestamp: at, reason: "FailedCreate" };
}

const waiting = (reason: string, restartCount = 0): PodStatus => ({
  phase: "Pending",
  containerStatuses: [containerStatus({ restartCount, state: { waiting: { reason, message: "Back-off" } } })],
});

const evicted = (seconds: number): string =>
  `${seconds} s after its node gets the taint node.kubernetes.io/unreachable, Kubernetes evicts them: a ReplicaSet or Job ` +
  "replaces them then, a StatefulSet only when west is ready again, its node is tainted out of service, or they are deleted by " +
  "force; nothing replaces a bare pod";

describe("the troubles of a workload", () => {
  test("are none while its pods run or start", () => {
    expect(troubles([replica("a", "west"), replica("b", "east", waiting("ContainerCreating"))])).toEqual([]);
  });

  test("name a lost member, the number of pods there, and when those are evicted", () => {
    const patient = replica("c", "west");
    const forever = { ...patient, spec: { containers: [], ...patient.spec, tolerations: [{ operator: "Exists" }] } };
    const stay = (pods: string): string =>
      `tolerations (legation.dev/failover) keep ${pods} there until west is ready again`;
    expect(troubles([replica("a", "west"), replica("b", "west"), replica("d", "east")], {}, lost)).toEqual([
      {
        what: "west is not ready: connect ECONNREFUSED; 2 pods there may run on, and the status shown is old",
        since: "2026-01-01T10:00:00Z",
        by: "legation controller",
        remedy: evicted(300),
      },
    ]);
    expect(troubles([replica("a", "west"), forever], {}, lost)[0]?.remedy).toBe(`${evicted(300)}; ${stay("1 pod")}`);
    expect(troubles([forever, forever], {}, lost)[0]?.remedy).toBe(stay("2 pods"));
    expect(troubles([replica("d", "east")], {}, lost)).toEqual([]);
  });

  test("say how to let pods go that are being deleted in a lost member", () => {
    const ending = replica("a", "west", runningStatus(), {
      deletionTimestamp: "2026-01-01T10:06:00Z",
      namespace: "shop",
    });
    expect(troubles([replica("b", "west"), ending], {}, lost)).toMatchObject([
      {
        remedy:
          `${evicted(300)}; pods that are being deleted end when west is ready again; where it is gone for good: ` +
          "kubectl -n shop delete pod a --grace-period=0 --force",
      },
    ]);
  });

  test("name the last refusal to create pods, and only while some are missing", () => {
    const refusals = [
      refusal("2026-01-01T10:00:00Z", "earlier"),
      refusal("2026-01-01T10:01:00Z", "exceeded quota: team"),
    ];
    expect(troubles([replica("a", "west")], { refusals, replicas: 3 })).toEqual([
      {
        what: "2 more cannot be created: exceeded quota: team",
        since: "2026-01-01T10:01:00Z",
        by: "ReplicaSet web-abc",
      },
    ]);
    expect(troubles([replica("a", "west")], { refusals })).toEqual([]);
  });

  test("group pods that do not start or have failed by their reason, and say where to look", () => {
    const exited: PodStatus = {
      phase: "Failed",
      containerStatuses: [containerStatus({ state: { terminated: { exitCode: 137, reason: "OOMKilled" } } })],
    };
    const lowOnMemory: PodStatus = { phase: "Failed", reason: "Evicted", message: "the node was low on memory" };
    const found = troubles([
      replica("a", "west", waiting("ImagePullBackOff")),
      replica("b", "west", waiting("ImagePullBackOff")),
      replica("c", "east", waiting("CrashLoopBackOff", 7)),
      replica("d", "east", exited),
      replica("e", "east", lowOnMemory),
    ]);
    expect(found).toEqual([
      {
        what: "2 pods in west: main waits: ImagePullBackOff: Back-off",
        remedy: "see `legation status pod a -n shop`",
      },
      {
        what: "1 pod in east: main waits: CrashLoopBackOff: Back-off (7 restarts)",
        remedy: "see `legation status pod c -n shop`",
      },
      {
        what: "1 pod in east: failed: main: exit code 137 (OOMKilled)",
        remedy: "see `legation status pod d -n shop`",
      },
      {
        what: "1 pod in east: failed: Evicted: the node was low on memory",
        remedy: "see `legation status pod e -n shop`",
      },
    ]);
  });
});
