import { expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { CapacityProvider } from "../../../../src/api/kueue.ts";
import type { FlavorCapacity } from "../../../../src/controllers/queues/capacity.ts";
import { decide, type ObservedProvider } from "../../../../src/controllers/queues/provider-decide.ts";

const NOW = 1_000_000;
const WALL = Date.parse("2026-01-01T00:00:00Z");

function provider(flavors: readonly string[], status: CapacityProvider["status"] = {}): Stored<CapacityProvider> {
  return {
    metadata: { name: "members", uid: "members-uid", resourceVersion: "1", generation: 2 },
    spec: { orchestratedFlavors: flavors.map((name) => ({ name })) },
    status,
  };
}

function observed(parts: Partial<ObservedProvider> = {}): ObservedProvider {
  const west: FlavorCapacity = {
    free: { cpu: 10.5, memory: 2 ** 30 },
    staying: new Map([
      ["one", { cpu: 2 }],
      ["other", { cpu: 1 }],
    ]),
    closed: new Map(),
  };
  return { provider: provider(["west"]), capacities: new Map([["west", west]]), heldUntil: () => undefined, ...parts };
}

test("a flavor's capacity is what is free, and what pods keep elsewhere", () => {
  const { actions } = decide(observed(), NOW, WALL);
  expect(actions).toEqual([
    {
      type: "status",
      status: {
        capacity: { flavors: [{ name: "west", resources: { cpu: "13500m", memory: "1Gi" } }] },
        conditions: [
          {
            type: "CapacitySynchronized",
            status: "True",
            reason: "Synchronized",
            message: "members' allocatable, less what others use there",
            lastTransitionTime: "2026-01-01T00:00:00Z",
            observedGeneration: 2,
          },
        ],
      },
    },
  ]);
});

test("a status that says so already is left alone", () => {
  const [action] = decide(observed(), NOW, WALL).actions;
  const again = observed({ provider: provider(["west"], action?.status) });
  expect(decide(again, NOW, WALL + 1)).toMatchObject({ actions: [], outcome: "InStep" });
});

test("a flavor that selects no members is named, with what to do", () => {
  const [action] = decide(observed({ provider: provider(["west", "own"]) }), NOW, WALL).actions;
  expect(action?.status.capacity?.flavors.map(({ name }) => name)).toEqual(["west"]);
  expect(action?.status.conditions).toMatchObject([
    { status: "False", reason: "Misconfigured", message: expect.stringContaining("named own; give it a node label") },
  ]);
});

test("conditions of others stay", () => {
  const other = {
    type: "Other",
    status: "True",
    reason: "Set",
    message: "",
    lastTransitionTime: "2025-01-01T00:00:00Z",
  };
  const [action] = decide(observed({ provider: provider(["west"], { conditions: [other] }) }), NOW, WALL).actions;
  expect(action?.status.conditions).toMatchObject([other, { type: "CapacitySynchronized" }]);
});

test("nothing is published before members were read, or while the write is held", () => {
  expect(decide(observed({ capacities: undefined }), NOW, WALL)).toMatchObject({ outcome: "MembersUnread" });
  expect(decide(observed({ heldUntil: () => NOW + 1 }), NOW, WALL)).toMatchObject({
    outcome: "Held",
    requeueAt: NOW + 1,
  });
});
