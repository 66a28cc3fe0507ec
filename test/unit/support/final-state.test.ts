import { describe, expect, test } from "vitest";
import type { Pod, PodStatus, Stored } from "../../../src/api/kubernetes.ts";
import { endedStatus, pod, proxyPod } from "../../support/builders/pod.ts";
import { comparable } from "../../support/harness/final-state.ts";

const ended: PodStatus = {
  ...endedStatus(0),
  startTime: "2026-01-01T00:00:00Z",
  conditions: [
    { type: "Ready", status: "False", reason: "PodCompleted" },
    { type: "Initialized", status: "True" },
  ],
};
const direct = pod({ metadata: { name: "web-bcdfg", namespace: "plain", generateName: "web-" }, status: ended });

function shown(only: Stored<Pod>): object {
  return comparable({ namespace: only.metadata.namespace ?? "", workloads: [], pods: [only] });
}

describe("the comparison of a pod on a plain cluster with a proxy", () => {
  test("ignores names, times, nodes and Legation's own marks", () => {
    const proxy = proxyPod({
      uid: "uid-2",
      metadata: {
        name: "web-hjkmn",
        namespace: "host",
        generateName: "web-",
        annotations: { "legation.dev/cluster": "west" },
      },
      spec: {},
      status: {
        ...ended,
        startTime: "2026-02-02T00:00:00Z",
        conditions: [...(ended.conditions ?? []).toReversed(), { type: "legation.dev/Other", status: "True" }],
      },
    });
    expect(shown(proxy)).toEqual(shown(direct));
  });

  test("ignores whether a kubelet has read that a pod has no limits", () => {
    const withResources = (resources: object): object =>
      shown({ ...direct, status: { ...ended, resources } as PodStatus });
    expect(withResources({ limits: { memory: "9007199254740988Ki" } })).toEqual(withResources({}));
    expect(withResources({ limits: { memory: "1Gi" } })).not.toEqual(withResources({}));
  });

  const differences: readonly [what: string, other: Stored<Pod>][] = [
    ["an exit code", { ...direct, status: { ...ended, ...endedStatus(1), phase: "Succeeded" } }],
    ["a phase", { ...direct, status: { ...ended, phase: "Failed" } }],
    ["a condition that is missing", { ...direct, status: { ...ended, conditions: ended.conditions?.slice(1) ?? [] } }],
    ["a moment that is missing", { ...direct, status: { ...endedStatus(0), conditions: ended.conditions ?? [] } }],
    ["a label", { ...direct, metadata: { ...direct.metadata, labels: { app: "web" } } }],
    ["an annotation", { ...direct, metadata: { ...direct.metadata, annotations: { note: "kept" } } }],
    ["a finalizer", { ...direct, metadata: { ...direct.metadata, finalizers: ["batch.kubernetes.io/job-tracking"] } }],
    ["an image", { ...direct, spec: { containers: [{ name: "main", image: "other" }] } }],
  ];
  test.each(differences)("sees %s", (_what, other) => {
    expect(shown(other)).not.toEqual(shown(direct));
  });
});
