import { describe, expect, test } from "vitest";
import {
  NODE_LABELS_ANNOTATION,
  NODE_TAINTS_ANNOTATION,
  VIRTUAL_NODE_LABEL,
  VIRTUAL_NODE_TAINT,
} from "../../../../src/api/keys.ts";
import { decide, isHostLikelyCutOff } from "../../../../src/controllers/virtual-node/decide.ts";
import { desiredNode } from "../../../../src/controllers/virtual-node/decide-node.ts";
import type { Action, NodeFacts, Observed } from "../../../../src/controllers/virtual-node/model.ts";
import { cluster, facts, now, observed, ready, stored, types } from "./observed.ts";

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
    expect(requeueAt).toBe(expected.length === 0 ? undefined : now + 12_000);
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
    expect(decide(settled, now)).toEqual({ actions: [], outcome: "Ready", requeueAt: now + 12_000 });
  });

  test("renews its lease every twelve seconds, and reports every five minutes", () => {
    const settled = observed({ node: stored(), cluster: cluster({ labels: { region: "eu" } }, ready) });
    expect(types(decide(settled, now + 11_999).actions)).toEqual([]);
    expect(types(decide(settled, now + 12_000).actions)).toEqual(["renewLease"]);
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
    const { actions } = decide(lost, now + 15_000);
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
    expect(types(decide(due, now + 15_000).actions)).toEqual(["renewLease", "patchNode"]);
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

  test("has pod counts reported with a pause, and the member's loss at once", () => {
    const counted = observed({
      node: stored(),
      facts: facts({ proxies: 7 }),
      cluster: cluster({ labels: { region: "eu" } }, ready),
    });
    expect(decide(counted, now + 1).actions).toEqual([]);
    const later = { ...counted, renewedAt: now + 15_000 };
    expect(types(decide(later, now + 15_000).actions)).toEqual(["patchClusterStatus"]);
    // A thousand of them would be a hundred writes a second.
    expect(decide({ ...later, members: 1000 }, now + 15_000).actions).toEqual([]);
    const paced = { ...counted, members: 1000, renewedAt: now + 50_000 };
    expect(types(decide(paced, now + 50_000).actions)).toEqual(["patchClusterStatus"]);
  });
});

describe("a Cluster that is being deleted", () => {
  const going = cluster({ deletionTimestamp: "2026-02-03T04:05:00Z" });

  test("waits for its proxies behind a cordon, with its node alive", () => {
    const draining = observed({ cluster: going, node: stored(), facts: facts({ proxies: 1 }) });
    const { actions, outcome } = decide(draining, now + 15_000);
    expect(outcome).toBe("Draining");
    expect(actions).toContainEqual({ type: "patchNode", patch: { spec: { unschedulable: true } } });
    expect(types(actions)).toContain("renewLease");
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

test("adds no finalizer to a terminating Cluster, which the API server would refuse", () => {
  const leaving = cluster({ deletionTimestamp: "2026-02-03T04:05:00Z", finalizers: ["example.com/other"] });
  const { actions } = decide(observed({ cluster: leaving, node: stored(), facts: facts({ proxies: 1 }) }), now);
  expect(types(actions)).not.toContain("addFinalizer");
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
