import { describe, expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { AdmissionCheck, KueueCondition } from "../../../../src/api/kueue-workload.ts";
import { placeWithinMs, roomChecks } from "../../../../src/controllers/queues/checks.ts";
import { AT, NOW } from "./workloads.ts";

function check(
  annotations: Readonly<Record<string, string>> = {},
  parts: Pick<AdmissionCheck, "spec" | "status"> = {},
): Stored<AdmissionCheck> {
  const spec = { controllerName: "legation.dev/room" };
  return { metadata: { name: "room", uid: "1", resourceVersion: "1", generation: 1, annotations }, spec, ...parts };
}

function condition(
  { check: of = check(), trouble }: { readonly check?: Stored<AdmissionCheck>; readonly trouble?: string },
  now: number = NOW,
): KueueCondition | undefined {
  const kind = roomChecks(
    () => trouble,
    () => {},
  );
  const change = kind.changeOf(of, [of], now);
  if (change === undefined || change === "unknown" || "reason" in change) return undefined;
  return (change.body as { status: { conditions: KueueCondition[] } }).status.conditions[0];
}

const ACTIVE = {
  type: "Active",
  status: "True",
  reason: "Active",
  message: "Legation answers whether members have room",
  lastTransitionTime: AT,
  observedGeneration: 1,
};

describe("an AdmissionCheck", () => {
  test("is active while Legation reads workloads", () => {
    expect(condition({})).toEqual(ACTIVE);
    expect(condition({ trouble: "no right" })).toMatchObject({
      status: "False",
      reason: "NotReady",
      message: "no right",
    });
  });

  test("is written once, and keeps the time of its state", () => {
    const shown = check({}, { status: { conditions: [ACTIVE] } });
    expect(condition({ check: shown })).toBeUndefined();
    const earlier = check({}, { status: { conditions: [{ ...ACTIVE, message: "earlier words" }] } });
    expect(condition({ check: earlier }, NOW + 60_000)).toMatchObject({ lastTransitionTime: AT });
    expect(condition({ check: earlier, trouble: "none" }, NOW + 60_000)).toMatchObject({
      lastTransitionTime: "2026-01-01T00:01:00Z",
    });
  });

  test("that is misspelt is not active, and says what to write", () => {
    expect(condition({ check: check({ "legation.dev/place-within": "soon" }) })).toMatchObject({
      status: "False",
      reason: "Invalid",
      message: expect.stringContaining('"soon", no time up to 24h; write hours, minutes and seconds'),
    });
    const spec = { controllerName: "legation.dev/room", parameters: { kind: "Room" } };
    expect(condition({ check: check({}, { spec }) })).toMatchObject({
      reason: "Invalid",
      message: "spec.parameters is set, and legation.dev/room has none; remove it",
    });
  });

  test("gives pods five minutes, or what its annotation says", () => {
    expect(placeWithinMs(check())).toBe(300_000);
    expect(placeWithinMs(check({ "legation.dev/place-within": "1h30m" }))).toBe(5_400_000);
  });
});
