import { describe, expect, test } from "vitest";
import { slotOf } from "../../../src/api/shards.ts";
import { withEndlessTolerations } from "../../../src/pods/failover.ts";
import { toProxy } from "../../../src/pods/proxy.ts";
import { mutatePod } from "../../../webhook/mutate-pod.ts";
import { type PodParts, pod, proxyPod } from "../../support/builders/pod.ts";
import { apply, request } from "./reviews.ts";

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

  test.each([
    { what: "of several shards", mode: "annotated", written: {}, labelsSlots: true, is: true },
    { what: "of several shards, in overflow mode", mode: "overflow", written: {}, labelsSlots: true, is: true },
    { what: "of a single shard", mode: "annotated", written: {}, labelsSlots: false, is: false },
    {
      what: "copied with another namespace's",
      mode: "annotated",
      written: { "legation.dev/slot": "64" },
      labelsSlots: false,
      is: true,
    },
  ] as const)("has its namespace's slot or none: $what", ({ mode, written, labelsSlots, is }) => {
    const before = pod({ metadata: { ...(mode === "annotated" ? asks : {}), labels: written } });
    const reviewed = { ...request({ object: before }), namespace: "team-a" };
    const { metadata } = apply(before, mutatePod(reviewed, mode, [], labelsSlots));
    expect(metadata?.labels?.["legation.dev/slot"]).toBe(is ? String(slotOf("team-a")) : undefined);
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
});

test.each<[string, PodParts, string]>([
  ["its fields", { metadata: asks, spec: { hostNetwork: true } }, "spec.hostNetwork: uses"],
  [
    "its annotations",
    { metadata: { annotations: { "legation.dev/api": "member" } } },
    "legation.dev/api: does not ask",
  ],
])("warns the author of a pod about %s", (_what, parts, warning) => {
  expect(verdict(parts)).toMatchObject({ warnings: [expect.stringContaining(warning)] });
});

test("admits operations other than CREATE unchanged", () => {
  expect(mutatePod(request({ operation: "UPDATE", object: pod({ metadata: asks }) }), "all")).toMatchObject({
    kind: "allowed",
  });
  expect(mutatePod(request({ operation: "DELETE", oldObject: pod() }), "all")).toMatchObject({ kind: "allowed" });
});
