import { describe, expect, test } from "vitest";
import type { KubeNode } from "../../../src/api/kubernetes.ts";
import { nodeFingerprint, totalsOf } from "../../../src/clusters/node-totals.ts";
import { fitOf, nodeRequirements } from "../../../src/placement/node-fit.ts";
import { toOverflow } from "../../../src/pods/overflow.ts";
import { pod } from "../../support/builders/pod.ts";

function node(declaredFeatures?: string[]): KubeNode {
  return { status: declaredFeatures === undefined ? {} : { declaredFeatures } };
}

describe("a member's features", () => {
  test.each([
    ["none of no nodes", [], []],
    ["what its only node declares", [node(["B", "A"])], ["A", "B"]],
    ["what all of its nodes declare", [node(["A", "B", "C"]), node(["B", "C"]), node(["C", "B"])], ["B", "C"]],
    ["none when a node declares none", [node(["A"]), node()], []],
  ])("are %s", (_case, nodes, features) => {
    expect(totalsOf(nodes).features).toEqual(features);
  });

  test("change when a node declares others", () => {
    expect(nodeFingerprint(node(["A"]))).not.toBe(nodeFingerprint(node(["A", "B"])));
  });
});

describe("a node with a taint", () => {
  const tainted = (key: string, effect = "NoSchedule"): KubeNode => ({
    metadata: { name: "gpu-1" },
    spec: { taints: [{ key, effect }] },
    status: {
      conditions: [{ type: "Ready", status: "True" }],
      capacity: { "nvidia.com/gpu": "4" },
      allocatable: { "nvidia.com/gpu": "4" },
    },
  });

  test.each<[string, string, number]>([
    ["of a role that pods may tolerate counts", "node-role.kubernetes.io/gpu", 4],
    ["of its owner counts", "dedicated", 4],
    ["of the control plane counts for nothing", "node-role.kubernetes.io/control-plane", 0],
    ["of the control plane, by its former name, counts for nothing", "node-role.kubernetes.io/master", 0],
    ["of Kubernetes for its state counts for nothing", "node.kubernetes.io/disk-pressure", 0],
  ])("%s", (_, key, gpus) => {
    const { allocatable, largestNode } = totalsOf([tainted(key)]);
    expect(allocatable["nvidia.com/gpu"] ?? 0).toBe(gpus);
    expect(largestNode["nvidia.com/gpu"] ?? 0).toBe(gpus);
  });

  test("of the control plane counts with effect PreferNoSchedule", () => {
    const { allocatable } = totalsOf([tainted("node-role.kubernetes.io/control-plane", "PreferNoSchedule")]);
    expect(allocatable["nvidia.com/gpu"]).toBe(4);
  });

  test("of a role takes only pods that tolerate it", () => {
    const key = "node-role.kubernetes.io/gpu";
    const requests = { "nvidia.com/gpu": 1 };
    const judged = (spec: object) => fitOf(nodeRequirements(pod({ spec }), requests), [tainted(key)]);
    expect(judged({ tolerations: [{ key, operator: "Exists" }] })).toMatchObject({ tolerated: 1, large: true });
    const refused = judged({});
    expect(refused).toMatchObject({ tolerated: 0, large: false });
    expect([...refused.against.keys()]).toEqual([`with taint ${key}:NoSchedule`]);
  });

  // The admission plugin ExtendedResourceToleration of a member's API server gives a pod these.
  test.each<[string, string, string, object, number]>([
    ["named as the GPUs that the pod requests", "nvidia.com/gpu", "NoSchedule", { "nvidia.com/gpu": 1 }, 1],
    ["that ends pods, though named so", "nvidia.com/gpu", "NoExecute", { "nvidia.com/gpu": 1 }, 0],
    ["named as GPUs, of a pod that requests none", "nvidia.com/gpu", "NoSchedule", { cpu: 1 }, 0],
    ["named as another device than the pod requests", "amd.com/gpu", "NoSchedule", { "nvidia.com/gpu": 1 }, 0],
    ["named as a resource without a domain", "memory", "NoSchedule", { memory: 1 }, 0],
    ["named as a resource of Kubernetes' own domain", "kubernetes.io/x", "NoSchedule", { "kubernetes.io/x": 1 }, 0],
  ])("%s", (_, key, effect, requests, tolerating) => {
    const fit = fitOf(nodeRequirements(pod(), requests as Record<string, number>), [tainted(key, effect)]);
    expect(fit.tolerated).toBe(tolerating);
  });

  test("named like the GPUs of a pod in overflow mode repels the pod", () => {
    const needs = nodeRequirements(toOverflow(pod()), { "nvidia.com/gpu": 1 });
    expect(fitOf(needs, [tainted("nvidia.com/gpu")]).tolerated).toBe(0);
  });
});

test("sums up a resource named like a field of every object", () => {
  const allocatable = { constructor: "2" };
  const of: KubeNode = { status: { allocatable, conditions: [{ type: "Ready", status: "True" }] } };
  const { allocatable: sum, largestNode } = totalsOf([of, of]);
  expect([sum, largestNode]).toEqual([{ constructor: 4 }, { constructor: 2 }]);
});
