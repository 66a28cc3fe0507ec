import { describe, expect, test } from "vitest";
import type { Cluster, ClusterCondition } from "../../../../src/api/cluster.ts";
import type { KubeNode, PodSpec, Stored } from "../../../../src/api/kubernetes.ts";
import { hostStatus } from "../../../../src/cli/explain/members.ts";
import { membersText } from "../../../../src/cli/status/members-text.ts";
import { endedStatus, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { recordedSession } from "../session.ts";

const NOW = Date.parse("2026-01-01T01:00:00Z");
const AGENT_SINCE = "2026-01-01T00:55:00Z";

function cluster(
  name: string,
  parts: Partial<Omit<Cluster, "metadata">> & { deleted?: boolean } = {},
): Stored<Cluster> {
  const { deleted = false, ...rest } = parts;
  return {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: {
      name,
      uid: `uid-of-${name}`,
      resourceVersion: "1",
      creationTimestamp: "2026-01-01T00:00:00Z",
      ...(deleted ? { deletionTimestamp: "2026-01-01T00:30:00Z" } : {}),
    },
    spec: { credentialsSecret: { name: `member-${name}` } },
    status: ready("True"),
    ...rest,
  };
}

function ready(status: "True" | "False", message = "its API server answers"): NonNullable<Cluster["status"]> {
  return {
    version: "v1.36.3",
    nodes: 3,
    allocatable: { cpu: "8", memory: "16Gi", pods: "110" },
    conditions: [{ type: "Ready", status, reason: "R", message, lastTransitionTime: "2026-01-01T00:00:00Z" }],
  };
}

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

  test("sorts and aligns the table, and shows reasons only where there are some", () => {
    const { terminal } = recordedSession();
    const clusters = [cluster("west"), cluster("east-with-a-name")];
    const text = membersText(hostStatus({ clusters, nodes: [], proxies: [] }), NOW, terminal);
    expect(text).toBe(
      [
        "NAME              READY  REACHED  VERSION  NODES  CPU FREE/ALL  MEMORY FREE/ALL  PODS RUN/ALL  AGE",
        "east-with-a-name  True   -        v1.36.3  3      8/8           16Gi/16Gi        0/0           60m",
        "west              True   -        v1.36.3  3      8/8           16Gi/16Gi        0/0           60m",
      ].join("\n"),
    );
  });

  test.each([
    ["directly", { connection: "Direct" }, "True"],
    ["agent 0.2.0, 5m", { connection: "Agent", agent: { version: "0.2.0", connectedSince: AGENT_SINCE } }, "True"],
    ["agent 0.2.0", { connection: "Agent", agent: { version: "0.2.0", connectedSince: AGENT_SINCE } }, "False"],
    ["agent", { connection: "Agent" }, "False"],
  ] as const)("says that a member is reached so: %s", (words, reported, isReady) => {
    const clusters = [cluster("west", { status: { ...ready(isReady), ...reported } })];
    const text = membersText(hostStatus({ clusters, nodes: [], proxies: [] }), NOW, recordedSession().terminal);
    expect(text.split("\n")[1]?.split(/ {2,}/)[2]).toBe(words);
  });

  test("names the members that users reach, and by which names", () => {
    const west = cluster("west");
    const open = { ...west, spec: { ...west.spec, access: { prefix: "legation:" } } };
    const state = hostStatus({ clusters: [open, cluster("east")], nodes: [], proxies: [] });
    expect(membersText(state, NOW, recordedSession().terminal).split("\n").at(-1)).toBe(
      "open to users by `legation kubeconfig NAME`: west (as legation:USER)",
    );
    expect(state.clusters.map(({ access }) => access)).toEqual([undefined, { prefix: "legation:" }]);
  });

  test("aligns coloured columns, and uses no colours with NO_COLOR", () => {
    const one = hostStatus({ clusters: [cluster("west")], nodes: [], proxies: [] });
    const plain = membersText(one, NOW, recordedSession().terminal);
    const coloured = membersText(one, NOW, recordedSession({ isTTY: true }).terminal);
    expect(coloured).not.toBe(plain);
    expect(coloured.replaceAll("\u001B[32m", "").replaceAll("\u001B[39m", "")).toBe(plain);
    expect(membersText(one, NOW, recordedSession({ isTTY: true, env: { NO_COLOR: "1" } }).terminal)).toBe(plain);
  });

  test("says how to join a member where there is none", () => {
    const text = membersText(
      hostStatus({ clusters: [], nodes: [], proxies: [proxyPod()] }),
      NOW,
      recordedSession().terminal,
    );
    expect(text).toContain("legation join");
    expect(text).toContain("1 not placed yet");
  });
});

test("counts delegates that the host does not know by member, with what to do about them", () => {
  const session = recordedSession();
  const held = (heldDelegates: number): NonNullable<Cluster["status"]> => ({ ...ready("True"), heldDelegates });
  const clusters = [
    cluster("west", { status: held(2) }),
    cluster("east", { status: held(0) }),
    cluster("north", { status: held(1) }),
  ];
  const status = hostStatus({ clusters, nodes: [], proxies: [] });
  expect(status.clusters.map((one) => one.held)).toEqual([undefined, 1, 2]);
  const text = membersText(status, NOW, session.terminal);
  expect(text).toContain("does not know them: 1 in north, 2 in west");
  expect(text).toContain("kubectl -n legation-system annotate lease legation-controller legation.dev/unled-");
  const none = membersText(hostStatus({ clusters: [cluster("west")], nodes: [], proxies: [] }), NOW, session.terminal);
  expect(none).not.toContain("does not know");
});
