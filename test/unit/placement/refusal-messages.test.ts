import { expect, test } from "vitest";
import {
  maxReplicasReached,
  mutatedRequests,
  noNodeSelected,
  noNodeTakes,
  noRoomForGang,
  notEnoughLeft,
  overLimit,
  skewed,
  tooLarge,
  tooLargeForAllowedNodes,
  type Why,
} from "../../../src/placement/refusal-messages.ts";

const GIB = 2 ** 30;
const memory = { resource: "memory", wanted: 2 * GIB };

test.each<[string, (amount: number) => Why]>([
  ["memory: 2Gi requested, 1Gi left", (left) => notEnoughLeft({ ...memory, left })],
  ["memory: 2Gi requested by gang web together, 1Gi left", (left) => noRoomForGang("gang web", { ...memory, left })],
  ["memory: 2Gi requested, the largest node has 1Gi", (largest) => tooLarge({ ...memory, largest })],
  [
    "memory: 2Gi requested, the largest node that the pod may go to has 1Gi",
    (largest) => tooLargeForAllowedNodes({ ...memory, largest }),
  ],
  ["its limit of memory: 2Gi requested, 1Gi of 8Gi left", (left) => overLimit({ ...memory, left, limit: 8 * GIB })],
  [
    "its limit for namespace team of memory: 2Gi requested, 1Gi of 8Gi left",
    (left) => overLimit({ ...memory, left, limit: 8 * GIB, namespace: "team" }),
  ],
])("a refusal for want of room says %j, and is the same one whatever is left", (message, why) => {
  expect(why(GIB).message).toBe(message);
  expect(why(GIB / 2).message).not.toBe(message);
  expect(why(GIB / 2).dedupe).toBe(why(GIB).dedupe);
  expect(why(GIB).dedupe).toBeDefined();
});

test.each<[string, Why, Why]>([
  ["nodes that the pod does not select", noNodeSelected(1), noNodeSelected(2)],
  [
    "nodes against the pod",
    noNodeTakes(3, new Map([["Insufficient cpu", 3]])),
    noNodeTakes(5, new Map([["Insufficient cpu", 4]])),
  ],
  ["replicas", maxReplicasReached(3), maxReplicasReached(4)],
  [
    "pods of a skewed spread",
    skewed({ topologyKey: "zone", value: "a", pods: 3, fewest: 1, maxSkew: 1 }),
    skewed({ topologyKey: "zone", value: "a", pods: 4, fewest: 2, maxSkew: 1 }),
  ],
])("a refusal is the same one whatever the number of %s", (_what, one, other) => {
  expect(other.message).not.toBe(one.message);
  expect(other.dedupe).toBe(one.dedupe);
  expect(one.dedupe).toBeDefined();
});

test("room that is left is never less than nothing", () => {
  expect(notEnoughLeft({ ...memory, left: -GIB }).message).toBe("memory: 2Gi requested, 0 left");
});

test("what no node has is not said as an amount", () => {
  expect(tooLarge({ resource: "nvidia.com/gpu", wanted: 1, largest: 0 }).message).toBe(
    "no schedulable node offers nvidia.com/gpu",
  );
});

test("reasons of nodes come with the commonest first, and those that are as common by name", () => {
  const against = new Map([
    ["node(s) had taints", 1],
    ["Insufficient memory", 2],
    ["Insufficient cpu", 1],
  ]);
  expect(noNodeTakes(4, against).message).toBe(
    "none of its 4 nodes takes the pod: 2 Insufficient memory, 1 Insufficient cpu, 1 node(s) had taints",
  );
});

test("changed requests say who changed them, and those of other resources are left out", () => {
  const mutation = {
    requests: { cpu: 2, memory: 3 * GIB, pods: 1 },
    by: { memory: "LimitRange", cpu: "Admission" },
  } as const;
  expect(mutatedRequests(mutation, (resource) => resource === "memory")).toBe(
    "memory: 3Gi requested there by the LimitRange of the namespace",
  );
  expect(mutatedRequests(mutation, () => true)).toBe(
    "cpu: 2 requested there by the member's admission, memory: 3Gi requested there by the LimitRange of the namespace",
  );
  expect(mutatedRequests(mutation, (resource) => resource === "pods")).toBeUndefined();
  expect(notEnoughLeft({ ...memory, left: 0, mutation }).message).toBe(
    "memory: 2Gi requested there by the LimitRange of the namespace, 0 left",
  );
});
