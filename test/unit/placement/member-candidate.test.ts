import { expect, test } from "vitest";
import { candidateOf } from "../../../src/placement/member-candidate.ts";

const amounts = { cpu: 1 };

function taintsOf(...keys: string[]): string[] {
  const { taints = [] } = candidateOf({
    cluster: { metadata: { name: "west" }, spec: { credentialsSecret: { name: "member-west" } } },
    closed: undefined,
    overdue: false,
    foreign: undefined,
    allocatable: amounts,
    largestNode: amounts,
    used: {},
    nodeTaints: keys.map((key) => ({ key, effect: "NoSchedule" })),
  });
  return taints.map(({ key }) => key);
}

test("taints of a virtual node count for pods, unless they tell of its state or are Legation's own", () => {
  const outOfService = "node.kubernetes.io/out-of-service";
  expect(taintsOf("team/batch", outOfService)).toEqual(["team/batch", outOfService]);
  expect(
    taintsOf("legation.dev/virtual-node", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable"),
  ).toEqual([]);
});
