import { describe, expect, test } from "vitest";
import type { KubeNode } from "../../../src/api/kubernetes.ts";
import { fitOf, nodeRequirements } from "../../../src/placement/node-fit.ts";
import { nodeKindsOf, nodesOf, untold } from "../../../src/placement/node-kinds.ts";
import { pod } from "../../support/builders/pod.ts";
import { processorMs } from "../../support/harness/processor-time.ts";

function node(
  labels: Record<string, string>,
  parts: Partial<KubeNode["spec"]> = {},
  cpu = "8",
  ready = true,
): KubeNode {
  return {
    metadata: { name: "n", labels },
    spec: parts,
    status: {
      allocatable: { cpu, memory: "16Gi", pods: "110" },
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
    },
  };
}

const many = (count: number, labels: (index: number) => Record<string, string>): KubeNode[] =>
  Array.from({ length: count }, (_, index) => node(labels(index)));

describe("kinds of nodes", () => {
  test("group schedulable nodes by labels, taints and size", () => {
    const gpu = [{ key: "gpu", value: "a100", effect: "NoSchedule" }];
    const told = nodeKindsOf([
      node({ zone: "a" }),
      node({ zone: "a" }, {}, "8010m"),
      node({ zone: "b" }, { taints: gpu }),
      node({ zone: "a" }, {}, "64"),
      node({ zone: "a" }, { unschedulable: true }),
      node({ zone: "a" }, {}, "8", false),
    ]);
    expect(told?.unlistedLabels).toEqual([]);
    expect(
      told?.kinds.map(({ count, labels, taints, allocatable }) => [count, labels, taints, allocatable.cpu]),
    ).toEqual([
      [1, { zone: "a" }, undefined, "64"],
      [1, { zone: "b" }, gpu, "8"],
      [2, { zone: "a" }, undefined, "8010m"],
    ]);
  });

  test("leave out labels with the most values first", () => {
    const told = nodeKindsOf(many(100, (index) => ({ host: `n${index}`, zone: `z${index % 3}`, os: "linux" })));
    expect(told?.unlistedLabels).toEqual(["host"]);
    expect(told?.kinds.map(({ count, labels }) => [count, labels])).toEqual([
      [33, { os: "linux", zone: "z1" }],
      [33, { os: "linux", zone: "z2" }],
      [34, { os: "linux", zone: "z0" }],
    ]);
  });

  test("leave out no more labels than needed, and count the merged nodes", () => {
    const told = nodeKindsOf(many(40, (index) => ({ pool: `p${index % 5}`, zone: `z${index % 4}`, os: "linux" })));
    expect(told?.unlistedLabels).toEqual(["pool"]);
    expect(told?.kinds.map(({ count, labels }) => [count, labels?.zone])).toEqual([
      [10, "z0"],
      [10, "z1"],
      [10, "z2"],
      [10, "z3"],
    ]);
  });

  test("stay small with long labels, and are undefined if sizes alone are too many", () => {
    const told = nodeKindsOf(many(16, (index) => ({ a: String(index), b: "x".repeat(60), c: "y".repeat(900) })));
    expect(JSON.stringify(told).length).toBeLessThan(9000);
    expect(nodeKindsOf(Array.from({ length: 17 }, (_, index) => node({}, {}, String(2 ** index))))).toBeUndefined();
  });

  test("summarise thousands of nodes quickly", () => {
    const nodes = many(5000, (index) => ({
      host: `n${index}`,
      zone: `z${index % 3}`,
      pool: `p${index % 40}`,
      os: "l",
    }));
    expect(processorMs(() => nodeKindsOf(nodes))).toBeLessThan(2000);
  });
});

test("bounds the cost of a member with endless labels or kinds", () => {
  const endless = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`l${index}`, "x"]));
  expect(nodeKindsOf([node(endless)])).toBeUndefined();
  const hostile = many(2000, (index) =>
    Object.fromEntries(Array.from({ length: 190 }, (_, key) => [`l${key}`, String((index * (key + 7)) % 16)])),
  );
  const told = nodeKindsOf(hostile);
  expect(told?.kinds.length).toBeLessThanOrEqual(16);
  expect(JSON.stringify(told).length).toBeLessThan(12_000);
  const took = processorMs(() => {
    nodeKindsOf([node(endless)]);
    nodeKindsOf(hostile);
  });
  expect(took).toBeLessThan(5_000);
});

describe("a judgement by kinds", () => {
  const nodes = [node({ zone: "a", host: "1" }), node({ zone: "b" }, {}, "2"), node({ zone: "b" }, {}, "2", false)];
  const kinds = nodeKindsOf(nodes) ?? { kinds: [], unlistedLabels: [] };

  test.each([
    ["nothing", {}],
    ["a zone", { nodeSelector: { zone: "b" } }],
    ["one node", { nodeSelector: { host: "1" } }],
    ["a zone that there is not", { nodeSelector: { zone: "c" } }],
  ])("equals that of the nodes for a pod that selects %s", (_, spec) => {
    const needs = nodeRequirements(pod({ spec }), { cpu: 4 });
    // Kinds do not tell why nodes take no pods.
    const { against: _against, ...fit } = fitOf(needs, nodes);
    expect(fitOf(needs, nodesOf(kinds, nodes.length))).toMatchObject(fit);
    expect(untold(needs, kinds)).toBeUndefined();
  });

  test("is unknown for labels left out and for names", () => {
    const told = { kinds: [], unlistedLabels: ["host"] };
    const named = { matchFields: [{ key: "metadata.name", operator: "In", values: ["n"] }] };
    const affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [named] } },
    };
    const matching = { nodeSelectorTerms: [{ matchExpressions: [{ key: "host", operator: "Exists" }] }] };
    const required = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: matching } };
    expect(untold(nodeRequirements(pod({ spec: { nodeSelector: { host: "1" } } }), {}), told)).toBe(
      "label host of nodes",
    );
    expect(untold(nodeRequirements(pod({ spec: { affinity: required } }), {}), told)).toBe("label host of nodes");
    expect(untold(nodeRequirements(pod({ spec: { affinity } }), {}), told)).toBe("names of nodes");
  });
});
