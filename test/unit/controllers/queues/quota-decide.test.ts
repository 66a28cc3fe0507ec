import { expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { ClusterQueue } from "../../../../src/api/kueue.ts";
import type { FlavorCapacity } from "../../../../src/controllers/queues/capacity.ts";
import { changedGroups, decide, type ObservedQueue } from "../../../../src/controllers/queues/quota-decide.ts";

const NOW = 1_000_000;

function queue(cpu: string, memory = "0"): Stored<ClusterQueue> {
  const resources = [
    { name: "cpu", nominalQuota: cpu, borrowingLimit: "1" },
    { name: "memory", nominalQuota: memory },
  ];
  return {
    metadata: { name: "team", uid: "team-uid", resourceVersion: "1" },
    spec: {
      resourceGroups: [
        { flavors: [{ name: "own", resources: [{ name: "cpu", nominalQuota: "5" }] }] },
        { flavors: [{ name: "west", resources }] },
      ],
    },
  };
}

function capacity(parts: Partial<FlavorCapacity> = {}): FlavorCapacity {
  return { free: { cpu: 100, memory: 2 ** 30 }, staying: new Map(), closed: new Map(), ...parts };
}

function observed(parts: Partial<ObservedQueue> = {}): ObservedQueue {
  const flavors = new Map([["west", { capacity: capacity(), share: 1 }]]);
  return { queue: queue("100", "1Gi"), floor: {}, flavors, heldUntil: () => undefined, ...parts };
}

const SOON = { requeueAt: NOW + 10_000 };

test("a quota that is true is left alone", () => {
  expect(decide(observed(), NOW)).toEqual({ actions: [], outcome: "InStep", ...SOON });
});

test("nothing is changed before members were read", () => {
  expect(decide(observed({ flavors: undefined, queue: queue("1") }), NOW)).toMatchObject({ actions: [] });
});

test("the quota is the share of what is free, and what stays beside it", () => {
  const parts = { free: { cpu: 10.0019, memory: 2 ** 21 + 5 }, staying: new Map([["team", { cpu: 4 }]]) };
  const flavors = new Map([["west", { capacity: capacity(parts), share: 0.5 }]]);
  const { actions } = decide(observed({ flavors }), NOW);
  expect(actions).toEqual([
    {
      type: "write",
      changes: [
        { flavor: "west", resource: "cpu", from: "100", to: "9" },
        { flavor: "west", resource: "memory", from: "1Gi", to: "1Mi" },
      ],
    },
  ]);
});

test("no quota falls below the floor", () => {
  const flavors = new Map([["west", { capacity: capacity({ free: {} }), share: 1 }]]);
  const { actions } = decide(observed({ flavors, floor: { cpu: 8, memory: 2 ** 30 } }), NOW);
  expect(actions).toMatchObject([{ changes: [{ resource: "cpu", to: "8" }] }]);
});

test("a member that takes nothing is named when the quota falls", () => {
  const parts = { free: {}, staying: new Map([["team", { cpu: 12 }]]), closed: new Map([["west", "it is not ready"]]) };
  const flavors = new Map([["west", { capacity: capacity(parts), share: 1 }]]);
  const { actions } = decide(observed({ flavors, floor: { memory: 2 ** 30 } }), NOW);
  expect(actions.at(-1)).toEqual({
    type: "tell",
    reason: "QuotaReduced",
    message: "less quota of west: cpu 100 -> 12; what runs stays, and no more is admitted in west: it is not ready",
  });
});

test("a held write waits, and a problem is told", () => {
  const waits = decide(observed({ queue: queue("1", "1Gi"), heldUntil: () => NOW + 5 }), NOW);
  expect(waits).toEqual({ actions: [], outcome: "Held", requeueAt: NOW + 5 });
  const { actions } = decide(observed({ problem: "it is misspelt" }), NOW);
  expect(actions).toEqual([{ type: "tell", reason: "InvalidQuota", message: "it is misspelt" }]);
});

test("a change keeps every other field of the queue", () => {
  const changes = [{ flavor: "west", resource: "cpu", from: "100", to: "9" }];
  const [own, west] = changedGroups(queue("100", "1Gi"), changes);
  expect(own).toEqual(queue("100").spec?.resourceGroups?.[0]);
  expect(west?.flavors?.[0]?.resources).toEqual([
    { name: "cpu", nominalQuota: "9", borrowingLimit: "1" },
    { name: "memory", nominalQuota: "1Gi" },
  ]);
});
