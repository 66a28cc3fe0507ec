import { describe, expect, test } from "vitest";
import { withEndlessTolerations } from "../../../src/pods/failover.ts";
import { toProxy } from "../../../src/pods/proxy.ts";
import { mutatePod } from "../../../webhook/mutate-pod.ts";
import { type PodParts, pod, proxyPod } from "../../support/builders/pod.ts";
import { apply, request } from "./reviews.ts";

const ASKS_NOTHING =
  'does not ask for delegation by itself, so it has no effect here; write legation.dev/delegate: "true", too';
const daemon = { apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "u", controller: true };
const { controller: _, ...uncontrolled } = daemon;
const asks = { annotations: { "legation.dev/delegate": "true" } };

function verdict(parts: PodParts, mode: "annotated" | "all" = "annotated") {
  return mutatePod(request({ object: pod(parts) }), mode);
}

describe("a pod that is to be delegated", () => {
  test.each<[string, "annotated" | "all", PodParts]>([
    ["that asks", "annotated", { metadata: asks }],
    ["that names clusters", "annotated", { metadata: { annotations: { "legation.dev/clusters": "west" } } }],
    ["that selects clusters", "annotated", { metadata: { annotations: { "legation.dev/cluster-selector": "gpu" } } }],
    ["of a namespace where all are", "all", {}],
    ["of a ReplicaSet", "all", { metadata: { ownerReferences: [{ ...daemon, kind: "ReplicaSet" }] } }],
    ["that a DaemonSet owns and does not control", "all", { metadata: { ownerReferences: [uncontrolled] } }],
    [
      "with labels, finalizers and a scheduler of its own",
      "all",
      {
        metadata: { labels: { "a/b~c": "d" }, finalizers: ["x.io/y"], annotations: { note: "z" } },
        spec: { schedulerName: "volcano" },
      },
    ],
    [
      "that another webhook changed after the first time",
      "all",
      {
        metadata: proxyPod({ metadata: { annotations: { "legation.dev/scheduler-name": "volcano" } } }).metadata,
        spec: { schedulerName: "yunikorn" },
      },
    ],
  ])("becomes a proxy: %s", (_, mode, parts) => {
    const before = pod(parts);
    expect(apply(before, verdict(parts, mode))).toEqual(toProxy(before));
  });

  test("becomes a proxy by a minimal patch", () => {
    expect(verdict({ metadata: { ...asks, labels: { app: "web" }, finalizers: ["x.io/y"] } })).toEqual({
      kind: "patched",
      warnings: [],
      patch: [
        { op: "add", path: "/spec/schedulerName", value: "legation" },
        { op: "add", path: "/metadata/finalizers/1", value: "legation.dev/delegate" },
        { op: "add", path: "/metadata/labels/legation.dev~1proxy", value: "true" },
      ],
    });
  });

  test("gets endless tolerations for failover never", () => {
    const tolerations = [
      { key: "gpu", operator: "Exists" },
      { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
    ];
    const before = pod({ metadata: { annotations: { "legation.dev/failover": "never" } }, spec: { tolerations } });
    const after = apply(before, mutatePod(request({ object: before }), "all"));
    expect(after).toEqual(withEndlessTolerations(toProxy(before)));
  });

  test("is not patched again", () => {
    expect(verdict({ metadata: { ...proxyPod().metadata, ...asks }, spec: { schedulerName: "legation" } })).toEqual({
      kind: "allowed",
      warnings: [],
    });
  });

  test("may lack name, labels and annotations", () => {
    const object = {
      metadata: { generateName: "web-", creationTimestamp: null, labels: null },
      spec: { containers: [] },
    };
    const answer = mutatePod(request({ object }), "all");
    expect(apply(object, answer)).toMatchObject({
      metadata: { labels: { "legation.dev/proxy": "true" }, finalizers: ["legation.dev/delegate"] },
      spec: { schedulerName: "legation" },
    });
  });
});

describe("a pod that is not to be delegated", () => {
  test.each<[string, "annotated" | "all", PodParts]>([
    ["without annotations, where pods must ask", "annotated", {}],
    ["that opts out", "all", { metadata: { annotations: { "legation.dev/delegate": "false" } } }],
    ["that another host made here", "all", { metadata: { ...asks, labels: { "legation.dev/host": "other" } } }],
    ["that a kubelet runs already", "all", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }],
    ["of a DaemonSet", "all", { metadata: { ownerReferences: [daemon] } }],
    ["with a node, where pods must ask", "annotated", { spec: { nodeName: "n1" } }],
  ])("stays as it is: %s", (_, mode, parts) => {
    expect(verdict(parts, mode)).toEqual({ kind: "allowed", warnings: [] });
  });
});

describe("a pod that cannot be delegated", () => {
  test.each<[string, "annotated" | "all", PodParts, string[]]>([
    [
      "malformed values",
      "annotated",
      {
        metadata: {
          annotations: { "legation.dev/delegate": "yes", "legation.dev/clusters": "-", "legation.dev/mode": "x" },
        },
      },
      ['"yes" is neither', '"-" is not a DNS label', 'legation.dev/mode: "x" is no mode'],
    ],
    [
      "a malformed value beside a refusal to be delegated",
      "annotated",
      { metadata: { annotations: { "legation.dev/delegate": "false", "legation.dev/clusters": "" } } },
      ["names no cluster"],
    ],
    [
      "what only Legation writes",
      "all",
      { metadata: { annotations: { "legation.dev/cluster": "west", "legation.dev/scheduler-name": "x" } } },
      ["legation.dev/scheduler-name: is written by Legation itself", "legation.dev/cluster: is written by Legation"],
    ],
    [
      "privileges by an override in any member",
      "all",
      {
        metadata: {
          annotations: {
            "legation.dev/overrides":
              '[{"clusters": ["west"], "patch": [{"op": "add", "path": "/spec/hostPID", "value": true}]}]',
          },
        },
      },
      ["annotation legation.dev/overrides: [0].patch: changes spec.hostPID, which this cluster's admission judges"],
    ],
    [
      "a node of the host",
      "annotated",
      { metadata: asks, spec: { nodeName: "n1" } },
      ['"n1" is a node of this cluster'],
    ],
    [
      "a virtual node",
      "all",
      { spec: { nodeName: "legation-west" } },
      ['"legation-west" is a virtual node', 'write the annotation legation.dev/clusters: "west"'],
    ],
    [
      "a node beside a malformed value",
      "all",
      { metadata: { annotations: { "legation.dev/clusters": "" } }, spec: { nodeName: "n1" } },
      ["names no cluster", '"n1" is a node of this cluster'],
    ],
  ])("is refused with every problem: %s", (_, mode, parts, messages) => {
    const answer = verdict(parts, mode);
    expect(answer.kind).toBe("denied");
    for (const message of messages) expect(answer).toMatchObject({ message: expect.stringContaining(message) });
  });

  test.each([null, "text", [], { containers: {} }, { schedulerName: 1 }, { nodeName: {} }])(
    "a spec that is none: %j",
    (spec) => {
      expect(mutatePod(request({ object: { metadata: {}, spec } }), "all").kind).toBe("denied");
    },
  );
});

describe("a legal but unusual pod gets a warning", () => {
  const on = (spec: PodParts["spec"]): PodParts => ({ metadata: asks, ...(spec === undefined ? {} : { spec }) });
  const main = { name: "main", image: "busybox" };
  test.each<[PodParts, string[]]>([
    [on({ hostNetwork: true }), ["spec.hostNetwork: uses the member node's network"]],
    [
      on({ nodeSelector: { "kubernetes.io/role": "agent", "liqo.io/type": "virtual-node", disk: "fast" } }),
      [
        `spec.nodeSelector: kubernetes.io/role: "agent" is asked of the members' own nodes; leave it out to choose any member, or write the annotation legation.dev/clusters`,
        `spec.nodeSelector: liqo.io/type: "virtual-node" is asked of the members' own nodes; leave it out to choose any member, or write the annotation legation.dev/clusters`,
      ],
    ],
    [on({ nodeSelector: { type: "virtual-kubelet", "kubernetes.io/role": "agent" } }), []],
    [on({ nodeSelector: { "kubernetes.io/role": "worker" } }), []],
    [
      on({
        volumes: [
          { name: "logs", hostPath: { path: "/var/log" } },
          { name: "tmp", emptyDir: {} },
        ],
      }),
      ["spec.volumes: logs: hostPath uses the member node's file system"],
    ],
    [
      on({ containers: [{ ...main, ports: [{ containerPort: 80, hostPort: 80 }] }] }),
      ["hostPort: uses the member node's ports"],
    ],
    [on({ containers: [{ ...main, ports: [{ containerPort: 80, hostPort: 0 }] }] }), []],
    [
      on({
        volumes: [
          { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } },
          { name: "data", persistentVolumeClaim: { claimName: "data" } },
        ],
      }),
      [
        "spec.volumes: scratch: ephemeral: this cluster makes a claim for it, too; name a StorageClass with " +
          "volumeBindingMode: WaitForFirstConsumer, or there is a volume here that no pod uses",
      ],
    ],
    [
      on({
        affinity: {
          podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "legation.dev/cluster" }] },
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 1, podAffinityTerm: { topologyKey: "legation.dev/cluster" } },
            ],
          },
        },
      }),
      [
        "spec.affinity.podAffinity: no node of a member has legation.dev/cluster; write the annotation legation.dev/group on pods that belong in one cluster",
        "spec.affinity.podAntiAffinity: topologyKey legation.dev/cluster has no effect; write topologySpreadConstraints with that key",
      ],
    ],
    [
      on({
        affinity: {
          podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] },
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "kubernetes.io/hostname" }],
          },
        },
      }),
      [],
    ],
    [
      { metadata: { annotations: { "legation.dev/cluster-selector": " " } } },
      ["legation.dev/cluster-selector is empty: it selects every cluster"],
    ],
    [
      { metadata: { annotations: { "legation.dev/delegate": "false", "legation.dev/clusters": "west" } } },
      ['legation.dev/delegate: "false": the pod stays in this cluster, whatever clusters are named'],
    ],
    [{ metadata: { annotations: { "legation.dev/api": "member" } } }, [`legation.dev/api: ${ASKS_NOTHING}`]],
    [
      {
        metadata: {
          annotations: {
            "multicluster.admiralty.io/no-reservation": "",
            "legation.dev/group": "flow-7",
            "legation.dev/overrides":
              '[{"clusters": ["west"], "patch": [{"op": "add", "path": "/spec/subdomain", "value": "x"}]}]',
          },
        },
      },
      [
        `multicluster.admiralty.io/no-reservation: ${ASKS_NOTHING}`,
        `legation.dev/group: ${ASKS_NOTHING}`,
        `legation.dev/overrides: ${ASKS_NOTHING}`,
      ],
    ],
    [
      { metadata: { annotations: { "legation.dev/delegate": "false", "legation.dev/scheduling-preferences": "{}" } } },
      ['legation.dev/scheduling-preferences: has no effect beside legation.dev/delegate: "false"'],
    ],
  ])("%j", (parts, warnings) => {
    expect(verdict(parts)).toMatchObject({ warnings });
  });
});

test("admits operations other than CREATE unchanged", () => {
  expect(mutatePod(request({ operation: "UPDATE", object: pod({ metadata: asks }) }), "all")).toMatchObject({
    kind: "allowed",
  });
  expect(mutatePod(request({ operation: "DELETE", oldObject: pod() }), "all")).toMatchObject({ kind: "allowed" });
});
