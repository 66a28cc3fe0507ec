import { expect, test } from "vitest";
import type { ClusterSpec } from "../../../src/api/cluster.ts";
import { CORDONED, candidateOf, type MemberFacts } from "../../../src/placement/member-candidate.ts";

const amounts = { cpu: 1 };

function factsOf(spec: Partial<ClusterSpec>, more: Partial<MemberFacts> = {}): MemberFacts {
  return {
    cluster: { metadata: { name: "west" }, spec: { credentialsSecret: { name: "member-west" }, ...spec } },
    closed: undefined,
    overdue: false,
    foreign: undefined,
    allocatable: amounts,
    largestNode: amounts,
    used: {},
    nodeTaints: [],
    ...more,
  };
}

function taintsOf(...keys: string[]): string[] {
  const { taints = [] } = candidateOf(factsOf({}, { nodeTaints: keys.map((key) => ({ key, effect: "NoSchedule" })) }));
  return taints.map(({ key }) => key);
}

test("counts taints of a virtual node, except state taints and Legation's own", () => {
  const outOfService = "node.kubernetes.io/out-of-service";
  expect(taintsOf("team/batch", outOfService)).toEqual(["team/batch", outOfService]);
  expect(
    taintsOf("legation.dev/virtual-node", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable"),
  ).toEqual([]);
});

test("counts a Cluster's taint once, in its present form", () => {
  const own = { key: "team", value: "gold", effect: "NoSchedule" } as const;
  const other = { key: "team", value: "iron", effect: "NoExecute" };
  const nodeTaints = [{ ...own, value: "iron" }, other];
  expect(candidateOf(factsOf({ taints: [own] }, { nodeTaints })).taints).toEqual([own, other]);
  expect(candidateOf(factsOf({ taints: [own] })).taints).toEqual([own]);
});

test("combines the operator's settings with the member's state", () => {
  const spec = { namespaceSelector: { matchLabels: { team: "gold" } }, limits: { total: { cpu: "500m" } } };
  const facts = factsOf(spec, { closed: CORDONED, overdue: true, foreign: { cpu: 2 } });
  expect(candidateOf(facts)).toMatchObject({
    name: "west",
    closed: CORDONED,
    overdue: true,
    foreign: { cpu: 2 },
    admits: [{ key: "team", operator: "In", values: ["gold"] }],
    limits: { total: { cpu: 0.5 } },
  });
});
