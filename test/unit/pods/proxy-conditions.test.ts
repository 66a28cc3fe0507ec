import { describe, expect, test } from "vitest";
import { PLACED_CONDITION } from "../../../src/api/keys.ts";
import type { PodCondition } from "../../../src/api/kubernetes.ts";
import { NOT_PLACED_REASONS, notPlacedCondition, whyNotPlaced } from "../../../src/pods/proxy-conditions.ts";
import { proxyPod } from "../../support/builders/pod.ts";

const now = Date.parse("2026-02-03T04:05:06.789Z");
const since = "2026-02-03T04:00:00Z";
const why = { reason: "NotPlaced", message: "west: full", now };
const bound = { nodeName: "legation-west" };

const condition = (type: string, parts: Partial<PodCondition> = {}): PodCondition => ({
  type,
  status: "False",
  ...parts,
});

function waits(conditions: PodCondition[], spec: object = {}) {
  return proxyPod({ metadata: { generation: 3 }, spec, status: { phase: "Pending", conditions } });
}

describe("the condition of a proxy that waits", () => {
  test.each<[string, object, string]>([
    ["is what its scheduler would write", {}, "PodScheduled"],
    ["is what a kubelet would write once it is bound", bound, "PodReadyToStartContainers"],
  ])("%s", (_, spec, type) => {
    expect(notPlacedCondition(waits([], spec), why)).toEqual({
      type,
      status: "False",
      reason: "NotPlaced",
      message: "west: full",
      lastTransitionTime: "2026-02-03T04:05:06Z",
      observedGeneration: 3,
    });
  });

  const gated = condition("PodScheduled", { reason: "SchedulingGated", lastTransitionTime: since });
  const former = condition(PLACED_CONDITION, { lastTransitionTime: since });
  const ready = condition("PodScheduled", { status: "True", lastTransitionTime: since });
  test.each<[string, PodCondition[], string]>([
    ["that of its earlier message", [condition("PodScheduled", { lastTransitionTime: since })], since],
    ["that of its gates, as kube-scheduler keeps it", [gated], since],
    ["that of the condition of an earlier version", [former], since],
    ["now, if it was not False before", [ready], "2026-02-03T04:05:06Z"],
  ])("has as transition time %s", (_, conditions, expected) => {
    expect(notPlacedCondition(waits(conditions), why).lastTransitionTime).toBe(expected);
  });

  test.each<[string, string, string]>([
    ["NotPlaced", "NotPlaced", "Unschedulable"],
    ["FailedScheduling", "NotPlaced", "Unschedulable"],
    ["ClusterNotReady", "ClusterNotReady", "ClusterNotReady"],
    ["NotBound", "NotBound", "NotBound"],
    ["FailedMount", "FailedMount", "FailedMount"],
  ])("shows for %s the operator's reason only if no member can have the pod", (reason, ...shown) => {
    const reasons = NOT_PLACED_REASONS.map(
      (shownAs) => notPlacedCondition(waits([]), { ...why, reason, shownAs }).reason,
    );
    expect(reasons).toEqual(shown);
  });

  test("never has the autoscalers' reason unless the operator chose it", () => {
    expect(notPlacedCondition(waits([]), why).reason).not.toBe("Unschedulable");
  });

  test("has no observedGeneration if the pod has no generation", () => {
    expect(notPlacedCondition(proxyPod(), why)).not.toHaveProperty("observedGeneration");
  });

  test("is truncated if a hundred members have reasons", () => {
    expect(notPlacedCondition(waits([]), { ...why, message: "x".repeat(20_000) }).message).toHaveLength(16_385);
  });
});

describe("why a proxy waits", () => {
  const told = condition("PodScheduled", { reason: "NotPlaced" });
  const refused = condition("PodReadyToStartContainers", { reason: "RefusedByMember" });
  test.each<[string, PodCondition[], object, PodCondition | undefined]>([
    ["is its PodScheduled", [told, refused], {}, told],
    ["is its PodReadyToStartContainers once it is bound", [told, refused], bound, refused],
    [
      "is not known while its gates were the last word",
      [condition("PodScheduled", { reason: "SchedulingGated" })],
      {},
      undefined,
    ],
    ["is not known while only its kubelet has spoken", [condition("PodReadyToStartContainers")], bound, undefined],
    ["is over when the condition is True", [{ ...refused, status: "True" }], bound, undefined],
    ["is not known before anything is reported", [], {}, undefined],
  ])("%s", (_, conditions, spec, expected) => {
    expect(whyNotPlaced(waits(conditions, spec))).toEqual(expected);
  });
});
