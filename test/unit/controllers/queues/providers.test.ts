import { expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { CapacityProvider, CapacityProviderStatus } from "../../../../src/api/kueue.ts";
import type { FlavorCapacity } from "../../../../src/controllers/queues/capacity.ts";
import { PROVIDERS } from "../../../../src/controllers/queues/providers.ts";

const WALL = Date.parse("2026-01-01T00:00:00Z");

function provider(flavors: readonly string[], status: CapacityProvider["status"] = {}): Stored<CapacityProvider> {
  return {
    metadata: { name: "members", uid: "members-uid", resourceVersion: "1", generation: 2 },
    spec: { orchestratedFlavors: flavors.map((name) => ({ name })) },
    status,
  };
}

function changeOf(of: Stored<CapacityProvider>, wall = WALL): ReturnType<typeof PROVIDERS.changeOf> {
  const west: FlavorCapacity = {
    free: { cpu: 10.5, memory: 2 ** 30 },
    staying: new Map([
      ["one", { cpu: 2 }],
      ["other", { cpu: 1 }],
    ]),
    closed: new Map(),
  };
  return PROVIDERS.changeOf(of, new Map([["west", west]]), [], wall);
}

/** Returns the status that is written. */
function statusOf(of: Stored<CapacityProvider>): CapacityProviderStatus {
  const change = changeOf(of);
  if (change === undefined || change === "unknown" || "reason" in change) throw new Error("nothing is written");
  return (change.body as { status: CapacityProviderStatus }).status;
}

test("a flavor's capacity is what is free, and what pods keep elsewhere", () => {
  expect(statusOf(provider(["west"]))).toEqual({
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
  });
});

test("a status that says so already is left alone", () => {
  expect(changeOf(provider(["west"], statusOf(provider(["west"]))), WALL + 1)).toBeUndefined();
});

test("a flavor that selects no members is named, with what to do", () => {
  const { capacity, conditions } = statusOf(provider(["west", "own"]));
  expect(capacity?.flavors.map(({ name }) => name)).toEqual(["west"]);
  expect(conditions).toMatchObject([
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
  expect(statusOf(provider(["west"], { conditions: [other] })).conditions).toMatchObject([
    other,
    { type: "CapacitySynchronized" },
  ]);
});
