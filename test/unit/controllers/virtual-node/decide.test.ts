import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import {
  CLUSTER_FINALIZER,
  EXCLUDE_DISRUPTION_LABEL,
  NODE_LABELS_ANNOTATION,
  NODE_TAINTS_ANNOTATION,
  VIRTUAL_NODE_LABEL,
  VIRTUAL_NODE_TAINT,
} from "../../../../src/api/keys.ts";
import type { KubeNode, Stored } from "../../../../src/api/kubernetes.ts";
import { decide, isHostLikelyCutOff } from "../../../../src/controllers/virtual-node/decide.ts";
import { desiredLabels, desiredNode, desiredStatus } from "../../../../src/controllers/virtual-node/decide-node.ts";
import { clusterStatus } from "../../../../src/controllers/virtual-node/decide-status.ts";
import type { Action, NodeFacts, Observed } from "../../../../src/controllers/virtual-node/model.ts";

const now = Date.parse("2026-02-03T04:05:06Z");

function facts(parts: Partial<NodeFacts> = {}): NodeFacts {
  const amounts = { cpu: 128, memory: 2 ** 39, pods: 10_000 };
  return {
    reachable: true,
    version: "v1.36.3",
    nodes: 2,
    capacity: amounts,
    allocatable: amounts,
    features: [],
    nodesRead: true,
    proxies: 0,
    waiting: 0,
    ...parts,
  };
}

function cluster(metadata: Partial<Cluster["metadata"]> = {}, status?: Cluster["status"]): Stored<Cluster> {
  return {
    metadata: {
      name: "west",
      uid: "c",
      resourceVersion: "1",
      generation: 1,
      finalizers: [CLUSTER_FINALIZER],
      ...metadata,
    },
    spec: { credentialsSecret: { name: "member-west" } },
    ...(status === undefined ? {} : { status }),
  };
}

function observed(parts: Partial<Observed> = {}): Observed {
  return {
    name: "west",
    cluster: cluster({ labels: { region: "eu", "kubernetes.io/os": "linux" } }),
    facts: facts(),
    node: undefined,
    endpoint: { address: "10.0.0.5", port: 10250 },
    nodePods: "none",
    hostNodes: true,
    renewedAt: now,
    heartbeatAt: now,
    reportedAt: now,
    ...parts,
  };
}

/** Returns the node as the API server stores it, with canonical quantities. */
function stored(
  parts: { spec?: KubeNode["spec"]; labels?: Record<string, string>; annotations?: Record<string, string> } = {},
): Stored<KubeNode> {
  const node = desiredNode(observed(), now);
  const amounts = { cpu: "128", memory: "512Gi", pods: "10k" };
  return {
    ...node,
    metadata: { ...node.metadata, name: "legation-west", uid: "n", resourceVersion: "1", ...parts },
    spec: { ...node.spec, ...parts.spec },
    status: { ...node.status, capacity: amounts, allocatable: { ...amounts, pods: "0" } },
  };
}

const VIRTUAL = { key: VIRTUAL_NODE_TAINT, effect: "NoSchedule" } as const;

const ready = {
  observedGeneration: 1,
  connection: "Direct" as const,
  version: "v1.36.3",
  nodes: 2,
  pods: 0,
  capacity: { cpu: "128", memory: "536870912Ki", pods: "10000" },
  allocatable: { cpu: "128", memory: "536870912Ki", pods: "10000" },
  conditions: [
    {
      type: "Ready",
      status: "True" as const,
      reason: "ProbeSucceeded",
      message: "its API server answers",
      lastTransitionTime: "x",
    },
  ],
};

function types(actions: readonly Action[]): string[] {
  return actions.map(({ type }) => type);
}

describe("a member's virtual node", () => {
  test.each<[string, Observed["endpoint"], Action["type"][]]>([
    ["gets this leader's endpoint, and nothing else", { address: "10.0.0.6", port: 10250 }, ["patchNodeEndpoint"]],
    ["is not written at all with the same endpoint", { address: "10.0.0.5", port: 10250 }, []],
    ["is not written at all without an endpoint", undefined, []],
  ])("of which the member is not read yet %s", (_what, endpoint, expected) => {
    const unread = observed({ unread: true, node: stored(), endpoint, renewedAt: 0, heartbeatAt: 0, reportedAt: 0 });
    expect(types(decide(unread, now).actions)).toEqual(expected);
  });

  test.each<[string, Partial<NodeFacts>, string, Action["type"][]]>([
    ["is kept alive while the member answers", { answers: true }, "True", ["renewLease"]],
    ["is not kept alive while the member does not answer", { answers: false }, "True", []],
    ["stays as it is when it is not Ready", { answers: true }, "Unknown", []],
  ])("of which the member is not read yet %s", (_what, parts, status, expected) => {
    const before = stored();
    const node = { ...before, status: { ...before.status, conditions: [{ type: "Ready", status }] } };
    const unread = observed({ unread: true, node, endpoint: undefined, renewedAt: 0, facts: facts(parts) });
    const { actions, requeueAt } = decide(unread, now);
    expect(types(actions)).toEqual(expected);
    expect(requeueAt).toBe(expected.length === 0 ? undefined : now + 10_000);
  });

  test("is Ready and says what takes long in a member that is slow, as does its Cluster", () => {
    const slow = "its pods are being listed since 2026-01-01T00:00:00Z";
    const seen = observed({ node: stored(), facts: facts({ slow, nodesRead: false }) });
    expect(desiredStatus(seen, stored(), now).conditions).toMatchObject([
      { status: "True", reason: "MemberSlow", message: `the API server of Cluster west answers, but ${slow}` },
    ]);
    const [condition] = (clusterStatus(seen, now)?.body as { conditions: unknown[] } | undefined)?.conditions ?? [];
    const message = `its API server answers, but is slow: ${slow}`;
    expect(condition).toMatchObject({ type: "Ready", status: "True", reason: "Slow", message });
  });

  test("is created with the Cluster's labels, its taint, and no label that draws DaemonSets", () => {
    const [action] = decide(observed(), now).actions;
    expect(action).toMatchObject({
      type: "createNode",
      node: {
        metadata: { name: "legation-west", labels: { region: "eu", [VIRTUAL_NODE_LABEL]: "west" } },
        spec: { taints: [{ key: VIRTUAL_NODE_TAINT, effect: "NoSchedule" }] },
        status: {
          capacity: { cpu: "128", pods: "10000" },
          conditions: [{ type: "Ready", status: "True" }],
          addresses: [{ type: "InternalIP", address: "10.0.0.5" }],
          daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
        },
      },
    });
    expect(action).not.toHaveProperty(["node", "metadata", "labels", "kubernetes.io/os"]);
  });

  test.each([
    ["has the hostname label when its Cluster has it with the node's name", "legation-west", "legation-west"],
    ["lacks the hostname label when its Cluster has it with another value", "west", undefined],
  ])("%s", (_, written, expected) => {
    const labels = { "kubernetes.io/hostname": written };
    const node = desiredNode(observed({ cluster: cluster({ labels }) }), now);
    expect(node.metadata?.labels?.["kubernetes.io/hostname"]).toBe(expected);
  });

  test.each([
    ["is not counted among the host's own nodes when some or all of these are lost", true, undefined, true],
    ["is counted on a host without nodes of its own", false, true, false],
    ["is left counted until the host's own nodes are read", undefined, undefined, false],
    ["is left uncounted until the host's own nodes are read", undefined, true, true],
  ])("%s", (_what, hostNodes, before, isExcluded) => {
    const labels = before === undefined ? {} : { [EXCLUDE_DISRUPTION_LABEL]: "" };
    const wanted = desiredLabels(observed({ hostNodes, node: stored({ labels }) }));
    expect(EXCLUDE_DISRUPTION_LABEL in wanted).toBe(isExcluded);
  });

  const endpoint = { address: "10.0.0.5", port: 10250 };
  test.each([
    ["v1.36.3", [], endpoint, ["ExtendWebSocketsToKubelet"]],
    ["v1.31.0-rc.1+build", [], endpoint, ["ExtendWebSocketsToKubelet"]],
    ["v1.30.9", ["ExtendWebSocketsToKubelet"], endpoint, []],
    ["v1.36.3", ["ExtendWebSocketsToKubelet", "Other"], undefined, ["Other"]],
    ["v1.36.3", ["Other", "Another"], endpoint, ["Another", "ExtendWebSocketsToKubelet", "Other"]],
  ])(
    "declares the features of a member of version %s whose nodes declare %j, with kubelet API %j: %j",
    (version, features, at, all) => {
      const status = desiredNode(observed({ facts: facts({ version, features }), endpoint: at }), now).status;
      expect(status?.declaredFeatures).toEqual(all);
    },
  );

  test("keeps its declared features while its member has not been read", () => {
    const { version: _, ...unknown } = facts();
    expect(desiredNode(observed({ facts: unknown }), now).status).not.toHaveProperty("declaredFeatures");
  });

  test("publishes the address of its kubelet API as configured", () => {
    const endpoint = { address: "10.0.0.6", addressType: "ExternalIP", port: 10250 } as const;
    const { status } = desiredNode(observed({ endpoint }), now);
    expect(status?.addresses).toEqual([{ type: "ExternalIP", address: "10.0.0.6" }]);
  });

  test("is written at once when its member's nodes declare other features", () => {
    const settled = { cluster: cluster({ labels: { region: "eu" } }, ready) };
    const node = { ...stored(), status: { ...stored().status, declaredFeatures: ["Before"] } };
    const { actions } = decide(observed({ ...settled, node, facts: facts({ features: ["Now"] }) }), now);
    const declaredFeatures = ["ExtendWebSocketsToKubelet", "Now"];
    expect(actions).toMatchObject([{ type: "patchNodeStatus", patch: { status: { declaredFeatures } } }]);
    const kept = { ...node, status: { ...node.status, declaredFeatures } };
    expect(decide(observed({ ...settled, node: kept, facts: facts({ features: ["Now"] }) }), now).actions).toEqual([]);
  });

  test("is written once for features that an older host does not keep", () => {
    const { declaredFeatures: _, ...status } = stored().status ?? {};
    const seen = observed({ node: { ...stored(), status }, cluster: cluster({ labels: { region: "eu" } }, ready) });
    const features = ["ExtendWebSocketsToKubelet"];
    const patch = { status: { declaredFeatures: features } };
    expect(decide(seen, now).actions).toMatchObject([{ type: "patchNodeStatus", patch }]);
    expect(decide({ ...seen, features }, now).actions).toEqual([]);
  });

  test("is written for its first features, after none", () => {
    const { declaredFeatures: _, ...status } = stored().status ?? {};
    const { endpoint: __, ...seen } = observed({
      node: { ...stored(), status },
      facts: facts({ features: ["Now"] }),
      features: [],
    });
    const { actions } = decide({ ...seen, endpoint: undefined }, now);
    expect(actions).toContainEqual(
      expect.objectContaining({
        type: "patchNodeStatus",
        patch: { status: expect.objectContaining({ declaredFeatures: ["Now"] }) },
      }),
    );
  });

  test.each([
    ["10.0.0.6", [{ type: "InternalIP", address: "10.0.0.6" }]],
    [
      "legation.example",
      [
        { type: "InternalDNS", address: "legation.example" },
        { type: "Hostname", address: "legation.example" },
      ],
    ],
  ])("publishes its kubelet API's address %s, and no earlier address", (address, addresses) => {
    const moved = observed({
      node: stored(),
      cluster: cluster({ labels: { region: "eu" } }, ready),
      endpoint: { address, port: 10251 },
    });
    expect(decide(moved, now).actions).toMatchObject([
      {
        type: "patchNodeStatus",
        patch: {
          status: {
            addresses: [{ $patch: "replace" }, ...addresses],
            daemonEndpoints: { kubeletEndpoint: { Port: 10251 } },
          },
        },
      },
    ]);
  });

  test.each([
    ["none, so that preemption helps no pod of the host there,", "none", "0"],
    ["as many as the member's nodes, where they are counted,", "members", "10000"],
  ] as const)("has room for pods: %s and the member's capacity", (_which, nodePods, pods) => {
    const { status } = desiredNode(observed({ nodePods }), now);
    expect(status?.allocatable).toMatchObject({ cpu: "128", memory: "536870912Ki", pods });
    expect(status?.capacity).toMatchObject({ pods: "10000" });
  });

  test("has no room for pods from its creation on, before the member's nodes are read", () => {
    const unread = facts({ nodesRead: false, capacity: {}, allocatable: {} });
    expect(desiredNode(observed({ facts: unread }), now).status?.allocatable).toEqual({ pods: "0" });
  });

  test("has nothing allocatable if no node of the member takes pods, and is not reported again for that", () => {
    const none = facts({ allocatable: {} });
    const nothing = { cpu: "0", memory: "0", pods: "0" };
    expect(desiredNode(observed({ facts: none }), now).status?.allocatable).toEqual(nothing);
    const shown = stored();
    const node = { ...shown, status: { ...shown.status, allocatable: nothing } };
    const settled = observed({ facts: none, node, cluster: cluster({ labels: { region: "eu" } }, ready) });
    expect(decide(settled, now).actions).toEqual([]);
  });

  test("costs nothing while nothing changes", () => {
    const settled = observed({ node: stored(), cluster: cluster({ labels: { region: "eu" } }, ready) });
    expect(decide(settled, now)).toEqual({ actions: [], outcome: "Ready", requeueAt: now + 10_000 });
  });

  test("renews its lease every ten seconds and reports every five minutes", () => {
    const settled = observed({ node: stored(), cluster: cluster({ labels: { region: "eu" } }, ready) });
    expect(types(decide(settled, now + 10_000).actions)).toEqual(["renewLease"]);
    expect(types(decide({ ...settled, renewedAt: now + 300_000 }, now + 300_000).actions)).toEqual(["patchNodeStatus"]);
  });

  test("is Unknown, with no lease renewed, when the member does not answer", () => {
    const lost = observed({ node: stored(), facts: facts({ reachable: false, message: "no answer within 5000 ms" }) });
    const { actions, outcome } = decide(lost, now + 60_000);
    expect(outcome).toBe("NotReady");
    expect(types(actions)).toEqual(["patchNodeStatus", "patchClusterStatus"]);
    expect(actions[0]).toMatchObject({
      patch: { status: { conditions: [{ type: "Ready", status: "Unknown", message: "no answer within 5000 ms" }] } },
    });
    expect(actions[1]).toMatchObject({ status: { conditions: [{ type: "Ready", status: "False" }] } });
  });

  test("stays Ready and renews its lease, and its Cluster is not Ready, when most members do not answer", () => {
    const spared = "2 of 2 members do not answer";
    const lost = observed({ node: stored(), facts: facts({ reachable: false, message: "no answer", spared }) });
    const { actions } = decide(lost, now + 10_000);
    expect(types(actions)).toEqual(["renewLease", "patchNodeStatus", "patchClusterStatus"]);
    expect(actions[1]).toMatchObject({
      patch: { status: { conditions: [{ type: "Ready", status: "True", message: spared }] } },
    });
    expect(actions[2]).toMatchObject({ status: { conditions: [{ type: "Ready", status: "False" }] } });
  });

  test("drops the node controller's Unknown conditions once it reports again", () => {
    const { status, ...rest } = stored();
    const unknown = { type: "DiskPressure", status: "Unknown", reason: "NodeStatusNeverUpdated" };
    const theirs = [
      unknown,
      { type: "PIDPressure", status: "True" },
      { type: "NetworkUnavailable", status: "Unknown" },
    ];
    const node = { ...rest, status: { ...status, conditions: [...(status?.conditions ?? []), ...theirs] } };
    const settled = observed({ node, cluster: cluster({ labels: { region: "eu" } }, ready) });
    const conditions = [expect.objectContaining({ type: "Ready" }), { type: "DiskPressure", $patch: "delete" }];
    expect(decide(settled, now).actions).toEqual([
      { type: "patchNodeStatus", patch: { status: expect.objectContaining({ conditions }) } },
    ]);
    const lost = decide({ ...settled, facts: facts({ reachable: false }) }, now);
    expect(lost.actions[0]).toMatchObject({ patch: { status: { conditions: [{ type: "Ready" }] } } });
  });

  test("follows its Cluster's labels, and leaves others' labels alone", () => {
    const node = stored({ labels: { ...stored().metadata.labels, theirs: "kept" } });
    const relabelled = observed({ node, cluster: cluster({ labels: { tier: "gold" } }, ready) });
    expect(decide(relabelled, now).actions[0]).toMatchObject({
      type: "patchNode",
      patch: { metadata: { labels: { tier: "gold", region: null } } },
    });
    expect(decide(relabelled, now).actions[0]).not.toHaveProperty(["patch", "metadata", "labels", "theirs"]);
  });

  test("gets its record of labels back within five minutes", () => {
    const { [NODE_LABELS_ANNOTATION]: keys, ...annotations } = stored().metadata.annotations ?? {};
    expect(keys).toContain("region");
    const stripped = observed({
      node: stored({ annotations }),
      cluster: cluster({ labels: { region: "eu" } }, ready),
      renewedAt: now + 299_999,
    });
    // Not sooner, so that no fight with another manager begins.
    expect(decide(stripped, now + 299_999).actions).toEqual([]);
    expect(decide({ ...stripped, renewedAt: now + 300_000 }, now + 300_000).actions).toContainEqual({
      type: "patchNode",
      patch: {
        metadata: { labels: {}, annotations: { [NODE_LABELS_ANNOTATION]: keys, [NODE_TAINTS_ANNOTATION]: null } },
      },
    });
  });

  test("stays alive before it applies its Cluster's changes, which may fail", () => {
    const taints = [{ key: "d", value: "refused", effect: "NoSchedule" as const }];
    const tainted = cluster({ labels: { region: "eu" } }, ready);
    const due = observed({ node: stored(), cluster: { ...tainted, spec: { ...tainted.spec, taints } } });
    expect(types(decide(due, now + 10_000).actions)).toEqual(["renewLease", "patchNode"]);
  });

  test("has reported how its member is reached, with the agent as it last connected", () => {
    const { metadata, spec } = cluster();
    const behindAgent = { metadata, spec: { ...spec, agent: {} } };
    const agent = { version: "1.2.3", since: now - 60_000 };
    const shown = { version: "1.2.3", connectedSince: "2026-02-03T04:04:06Z" };
    const statusOf = (parts: Partial<Observed>): object | undefined =>
      decide(observed({ node: stored(), reportedAt: 0, ...parts }), now).actions.flatMap((action) =>
        action.type === "patchClusterStatus" ? action.status : [],
      )[0];
    expect(statusOf({ cluster: cluster() })).toMatchObject({ connection: "Direct" });
    expect(statusOf({ cluster: behindAgent, facts: facts({ agent }) })).toMatchObject({
      connection: "Agent",
      agent: shown,
    });
    const reported = { ...ready, connection: "Agent" as const, agent: shown };
    const known = { ...behindAgent, status: reported };
    expect(statusOf({ cluster: known, facts: facts({ agent }) })).toBeUndefined();
    // The agent's version stays while no agent is connected, and goes with a join without one.
    expect(statusOf({ cluster: known })).toBeUndefined();
    expect(statusOf({ cluster: { ...known, spec } })).toMatchObject({ connection: "Direct", agent: null });
  });

  test("has a refused creation reported, and tried again", () => {
    const lacking = observed({ refused: "taint: invalid value" });
    const { actions } = decide(lacking, now);
    expect(types(actions)).toEqual(["patchClusterStatus", "createNode"]);
    expect(actions[0]).toMatchObject({
      status: {
        conditions: [{ status: "False", reason: "NodeRefused", message: "Node legation-west: taint: invalid value" }],
      },
    });
  });

  test("keeps its taint beside those of the node controller", () => {
    const theirs = { key: "node.kubernetes.io/unreachable", effect: "NoExecute" };
    const node = stored({ spec: { taints: [theirs] } });
    expect(decide(observed({ node }), now).actions.at(-1)).toMatchObject({
      patch: { spec: { taints: [theirs, { key: VIRTUAL_NODE_TAINT }] } },
    });
  });

  test("has pod counts reported with a pause, and the member's loss at once", () => {
    const counted = observed({
      node: stored(),
      facts: facts({ proxies: 7 }),
      cluster: cluster({ labels: { region: "eu" } }, ready),
    });
    expect(decide(counted, now + 1).actions).toEqual([]);
    expect(types(decide({ ...counted, renewedAt: now + 10_000 }, now + 10_000).actions)).toEqual([
      "patchClusterStatus",
    ]);
  });
});

describe("a Cluster that is being deleted", () => {
  const going = cluster({ deletionTimestamp: "2026-02-03T04:05:00Z" });

  test("waits for its proxies behind a cordon, with its node alive", () => {
    const draining = observed({ cluster: going, node: stored(), facts: facts({ proxies: 1 }) });
    const { actions, outcome } = decide(draining, now + 10_000);
    expect(outcome).toBe("Draining");
    expect(actions).toContainEqual({ type: "patchNode", patch: { spec: { unschedulable: true } } });
    expect(types(actions)).toContain("renewLease");
  });

  test.each([
    ["that answers", true, 500, "are being withdrawn"],
    ["that does not answer", false, 10_000, "`legation unjoin west --force` gives them up"],
  ])("waits for delegates without a node in a member %s, and reports that", (_which, reachable, afterMs, message) => {
    const waiting = observed({ cluster: going, node: stored(), facts: facts({ waiting: 2, reachable }) });
    const { actions, outcome, requeueAt } = decide(waiting, now);
    expect({ outcome, requeueAt }).toEqual({ outcome: "Draining", requeueAt: now + afterMs });
    expect(types(actions)).not.toContain("removeFinalizer");
    expect(types(actions)).not.toContain("deleteNode");
    const written = actions.find((action) => action.type === "patchClusterStatus");
    expect(written?.status).toMatchObject({
      conditions: [
        { type: "Ready" },
        { type: "Released", status: "False", reason: "PodsRemain", message: expect.stringContaining(message) },
      ],
    });
  });

  test("gives up delegates without a node when its node is out of service, and deletes the node last", () => {
    const spec = { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" as const }] };
    const lost = observed({
      cluster: going,
      node: stored({ spec }),
      facts: facts({ waiting: 1, reachable: false }),
    });
    expect(types(decide(lost, now).actions)).toEqual(["removeFinalizer", "deleteNode"]);
    const answering = { ...lost, facts: facts({ waiting: 1 }) };
    expect(types(decide(answering, now).actions)).not.toContain("removeFinalizer");
  });

  test("reports which pods on its node it waits for", () => {
    const draining = observed({ cluster: going, node: stored(), facts: facts({ proxies: 1 }) });
    const written = decide(draining, now).actions.find((action) => action.type === "patchClusterStatus");
    expect(written?.status).toMatchObject({
      conditions: [{ type: "Ready" }, { type: "Released", message: "1 pod is bound to Node legation-west" }],
    });
  });

  test("stays, with its earlier counts, while the host's pods have not been read", () => {
    const told = cluster({ deletionTimestamp: "2026-02-03T04:05:00Z" }, { pods: 7, heldDelegates: 2 });
    const { proxies: _, ...rest } = facts();
    const unread = observed({ cluster: told, node: stored(), facts: { ...rest, proxies: undefined } });
    const { actions, outcome } = decide(unread, now);
    expect(outcome).toBe("Draining");
    expect(types(actions)).not.toContain("deleteNode");
    const written = actions.find((action) => action.type === "patchClusterStatus");
    expect(written?.status).not.toHaveProperty("pods");
    expect(written?.status).not.toHaveProperty("heldDelegates");
  });

  test("goes with its node when no pod is left", () => {
    expect(types(decide(observed({ cluster: going, node: stored() }), now).actions)).toEqual([
      "deleteNode",
      "removeFinalizer",
    ]);
  });

  test("leaves no node when it is gone", () => {
    expect(types(decide(observed({ cluster: undefined, node: stored() }), now).actions)).toEqual(["deleteNode"]);
  });
});

test("reports a member as lost on node and Cluster when another cluster answers in its place", () => {
  const lost = facts({ reachable: false, notMember: "AnotherCluster", message: "another cluster answers" });
  const { actions } = decide(observed({ node: stored(), cluster: cluster(), facts: lost }), now);
  expect(actions).toContainEqual({
    type: "patchNodeStatus",
    patch: {
      status: expect.objectContaining({
        conditions: [
          expect.objectContaining({ status: "Unknown", reason: "AnotherCluster", message: "another cluster answers" }),
        ],
      }),
    },
  });
  expect(actions).toContainEqual({
    type: "patchClusterStatus",
    status: expect.objectContaining({
      conditions: [expect.objectContaining({ status: "False", reason: "AnotherCluster" })],
    }),
  });
});

describe("the taints of a node that its Cluster has written", () => {
  const upkeep = { key: "example.com/upkeep", effect: "NoSchedule" } as const;
  const earlier = { ...upkeep, value: "earlier" };
  const annotations = { ...stored().metadata.annotations, [NODE_TAINTS_ANNOTATION]: JSON.stringify([upkeep]) };

  test.each([
    { named: "stay", noted: annotations, there: [VIRTUAL, upkeep], wanted: [upkeep], written: undefined },
    { named: "go with the Cluster's", noted: annotations, there: [VIRTUAL, upkeep], wanted: [], written: [VIRTUAL] },
    {
      named: "take the place of another's with the same key and effect",
      noted: stored().metadata.annotations ?? {},
      there: [VIRTUAL, earlier],
      wanted: [upkeep],
      written: [VIRTUAL, upkeep],
    },
  ])("$named, with the observed list as precondition", ({ noted, there, wanted, written }) => {
    const { cluster: west = cluster() } = observed();
    const tainted = { ...west, spec: { ...west.spec, taints: wanted } };
    const node = stored({ annotations: noted, spec: { taints: there } });
    const patches = decide(observed({ node, cluster: tainted }), now).actions.filter(
      ({ type }) => type === "patchNode",
    );
    const expected = { metadata: { resourceVersion: "1" }, spec: { taints: written } };
    expect(patches).toMatchObject(written === undefined ? [] : [{ patch: expected }]);
  });
});

test("keeps a member's capacity while its nodes have not been read", () => {
  const unread = facts({ nodesRead: false, nodes: 0, capacity: {}, allocatable: {} });
  const { actions } = decide(observed({ node: stored(), facts: unread, heartbeatAt: 0 }), now);
  const [report] = actions.flatMap((action) => (action.type === "patchNodeStatus" ? [action.patch] : []));
  expect(report).toHaveProperty("status.conditions");
  expect(report).not.toHaveProperty("status.capacity");
  expect(report).not.toHaveProperty("status.allocatable");
});

test("adds no finalizer to a terminating Cluster, which the API server would refuse", () => {
  const leaving = cluster({ deletionTimestamp: "2026-02-03T04:05:00Z", finalizers: ["example.com/other"] });
  const { actions } = decide(observed({ cluster: leaving, node: stored(), facts: facts({ proxies: 1 }) }), now);
  expect(types(actions)).not.toContain("addFinalizer");
});

describe("a deleted virtual node", () => {
  const own = { key: "example.com/pool", effect: "NoSchedule" } as const;
  const byHand = { key: "example.com/upkeep", effect: "NoSchedule" } as const;
  const lost = {
    key: "node.kubernetes.io/unreachable",
    effect: "NoExecute",
    timeAdded: "2026-02-03T04:00:00Z",
  } as const;

  function tainted(taints: NonNullable<Cluster["spec"]["taints"]>): Stored<Cluster> {
    return { ...cluster(), spec: { ...cluster().spec, taints } };
  }

  test("is restored cordoned, with the taints that it had", () => {
    const deleted = stored({ spec: { unschedulable: true, taints: [VIRTUAL, byHand, lost] } });
    const { spec } = desiredNode(observed({ deleted }), now);
    expect(spec).toEqual({
      unschedulable: true,
      taints: [VIRTUAL, byHand, lost],
      providerID: "legation://west",
    });
  });

  test("is restored with its Cluster's present taints", () => {
    const before = desiredNode(observed({ cluster: tainted([own]) }), now);
    const deleted = {
      ...before,
      metadata: { ...before.metadata, name: "legation-west", uid: "n", resourceVersion: "1" },
    };
    const next = { ...own, key: "example.com/other" };
    const { spec } = desiredNode(observed({ deleted, cluster: tainted([next]) }), now);
    expect(spec?.taints).toEqual([VIRTUAL, next]);
    expect(spec).not.toHaveProperty("unschedulable");
  });
});

describe("the label by which cluster autoscalers ignore the resources of virtual nodes", () => {
  const labelOf = (labels: Record<string, string>): string | undefined =>
    desiredNode(observed({ cluster: cluster({ labels }) }), now).metadata?.labels?.type;

  test("is on the node", () => {
    expect(labelOf({ region: "eu" })).toBe("virtual-kubelet");
  });

  test("is the node's also where the Cluster has a label of that key", () => {
    expect(labelOf({ type: "edge" })).toBe("virtual-kubelet");
  });

  test("is added to a node without it, and stays when the Cluster loses one of that key", () => {
    const node = stored({ labels: { type: "edge" } });
    const annotations = { ...node.metadata.annotations, "legation.dev/node-labels": "type" };
    const before = { ...node, metadata: { ...node.metadata, annotations } };
    const { actions } = decide(observed({ cluster: cluster(), node: before }), now);
    expect(actions).toContainEqual({
      type: "patchNode",
      patch: expect.objectContaining({
        metadata: expect.objectContaining({ labels: expect.objectContaining({ type: "virtual-kubelet" }) }),
      }),
    });
  });
});

test("keeps labels by which tools find their objects off the node, and removes them", () => {
  const labels = {
    region: "eu",
    "app.kubernetes.io/instance": "clusters",
    "app.kubernetes.io/managed-by": "Helm",
    "argocd.argoproj.io/instance": "clusters",
    "kustomize.toolkit.fluxcd.io/name": "clusters",
    "helm.toolkit.fluxcd.io/name": "clusters",
    "topology.kubernetes.io/region": "eu",
  };
  const there = observed({ cluster: cluster({ labels }) });
  expect(Object.keys(desiredNode(there, now).metadata?.labels ?? {}).sort()).toEqual([
    VIRTUAL_NODE_LABEL,
    "node-role.kubernetes.io/member",
    EXCLUDE_DISRUPTION_LABEL,
    "node.kubernetes.io/exclude-from-external-load-balancers",
    "region",
    "topology.kubernetes.io/region",
    "type",
  ]);
  const node = stored();
  const earlier = "region,app.kubernetes.io/instance,toString";
  const annotations = { ...node.metadata.annotations, "legation.dev/node-labels": earlier };
  const bears = { ...node.metadata.labels, "app.kubernetes.io/instance": "clusters", toString: "a" };
  const { actions } = decide(
    { ...there, node: { ...node, metadata: { ...node.metadata, annotations, labels: bears } } },
    now,
  );
  expect(actions).toContainEqual({
    type: "patchNode",
    patch: expect.objectContaining({
      metadata: expect.objectContaining({
        labels: expect.objectContaining({ "app.kubernetes.io/instance": null, toString: null }),
      }),
    }),
  });
});

test.each([
  // Lost members, all members, and the expected result.
  [0, 0, false],
  [0, 5, false],
  [1, 1, false],
  [1, 2, false],
  [2, 2, true],
  [2, 3, false],
  [3, 3, true],
  [3, 5, true],
  [3, 6, false],
  [11, 20, true],
  [10, 20, false],
])("blames the host, or not, for %i lost of %i members: %s", (lost, all, expected) => {
  expect(isHostLikelyCutOff(lost, all)).toBe(expected);
});
