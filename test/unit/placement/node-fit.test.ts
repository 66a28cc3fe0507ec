import { describe, expect, test } from "vitest";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../../src/api/keys.ts";
import type { KubeNode, NodeSelectorTerm, Taint } from "../../../src/api/kubernetes.ts";
import { fitOf, nodeRequirements } from "../../../src/placement/node-fit.ts";
import { pod } from "../../support/builders/pod.ts";

function node(name: string, parts: { readonly taints?: Taint[]; readonly ready?: string } = {}): KubeNode {
  const { taints = [], ready = "True" } = parts;
  return {
    metadata: { name, labels: { host: name } },
    spec: { taints },
    status: { allocatable: { cpu: "4" }, conditions: [{ type: "Ready", status: ready }] },
  };
}

describe("a node with an extended resource's taint takes a pod that requests it", () => {
  const gpu = "nvidia.com/gpu";
  test.each<[string, string, string, Record<string, string>, number]>([
    ["since a member's admission may tolerate it", gpu, "NoSchedule", {}, 1],
    ["but not where that ends what runs", gpu, "NoExecute", {}, 0],
    ["but not where the resource is one of Kubernetes' own", "example.kubernetes.io/disk", "NoSchedule", {}, 0],
    ["but not in overflow mode: it stays where it goes", gpu, "NoSchedule", { [PROXY_LABEL]: OVERFLOW_LABEL_VALUE }, 0],
  ])("%s", (_, resource, effect, labels, tolerated) => {
    const needs = nodeRequirements(pod({ metadata: { labels } }), { [resource]: 1, pods: 1 });
    expect(fitOf(needs, [node("n", { taints: [{ key: resource, effect }] })]).tolerated).toBe(tolerated);
  });
});

describe("the terms of required affinity select a node", () => {
  const named = (name: string): NodeSelectorTerm => ({
    matchFields: [{ key: "metadata.name", operator: "In", values: [name] }],
  });
  const labelled = (host: string): NodeSelectorTerm => ({
    matchExpressions: [{ key: "host", operator: "In", values: [host] }],
  });
  test.each<[string, NodeSelectorTerm[], number]>([
    ["by its name", [named("a")], 1],
    ["by a label or its name", [labelled("a"), named("b")], 2],
    ["by a label and its name", [{ ...labelled("a"), ...named("b") }], 0],
    ["never when they say nothing", [{}], 0],
  ])("%s", (_, nodeSelectorTerms, selected) => {
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
    const needs = nodeRequirements(pod({ spec: { affinity: { nodeAffinity } } }), { cpu: 1 });
    expect(fitOf(needs, [node("a"), node("b"), node("c")]).selected).toBe(selected);
  });
});

test("does not use a node whose readiness is unknown", () => {
  expect(fitOf(nodeRequirements(pod(), {}), [node("a", { ready: "Unknown" })]).selected).toBe(0);
});

test("requires all requested resources on one node", () => {
  const small = { ...node("small"), status: { ...node("small").status, allocatable: { cpu: "1" } } };
  for (const nodes of [
    [node("large"), small],
    [small, node("large")],
  ]) {
    expect(fitOf(nodeRequirements(pod(), { cpu: 4 }), nodes).large).toBe(true);
  }
});

test("truncates a member's overlong taint in the message", () => {
  const taints = [{ key: "k", value: "v".repeat(10_000), effect: "NoSchedule" }];
  const [reason = ""] = fitOf(nodeRequirements(pod(), {}), [node("a", { taints })]).against.keys();
  expect(reason.length).toBeLessThan(200);
});
