import { describe, expect, test } from "vitest";
import type { KubeNode } from "../../../src/api/kubernetes.ts";
import { capacityOf, nodeFingerprint } from "../../../src/clusters/capacity.ts";

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
    expect(capacityOf(nodes).features).toEqual(features);
  });

  test("are looked at again when a node declares others", () => {
    expect(nodeFingerprint(node(["A"]))).not.toBe(nodeFingerprint(node(["A", "B"])));
  });
});
