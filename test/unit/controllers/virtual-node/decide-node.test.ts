import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import {
  EXCLUDE_DISRUPTION_LABEL,
  NODE_TAINTS_ANNOTATION,
  VIRTUAL_NODE_LABEL,
  VIRTUAL_NODE_TAINT,
} from "../../../../src/api/keys.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/virtual-node/decide.ts";
import { desiredLabels, desiredNode } from "../../../../src/controllers/virtual-node/decide-node.ts";
import { cluster, facts, now, observed, stored } from "./observed.ts";

const VIRTUAL = { key: VIRTUAL_NODE_TAINT, effect: "NoSchedule" } as const;

describe("a member's virtual node", () => {
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

  test("keeps its taint beside those of the node controller", () => {
    const theirs = { key: "node.kubernetes.io/unreachable", effect: "NoExecute" };
    const node = stored({ spec: { taints: [theirs] } });
    expect(decide(observed({ node }), now).actions.at(-1)).toMatchObject({
      patch: { spec: { taints: [theirs, { key: VIRTUAL_NODE_TAINT }] } },
    });
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
