import { describe, expect, test } from "vitest";
import type { CheckEntry } from "../../../../src/api/kueue-workload.ts";
import { decide, type Observed, reservationOf } from "../../../../src/controllers/queues/decide-room.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { AT, entry, isTrue, NOW, workload } from "./workloads.ts";

const MINUTE = 60_000;
const READY = { state: "Ready", message: "1 pod fits: 1 in west" } as const;

function observed(parts: Partial<Observed> = {}): Observed {
  const found = parts.workload ?? workload("train");
  const entries = found.status?.admissionChecks ?? [];
  return {
    workload: found,
    entries,
    judged: { ...READY, reservation: reservationOf(found, entries) },
    placeWithinMs: 5 * MINUTE,
    pods: [],
    heldUntil: undefined,
    ...parts,
  };
}

function written(seen: Observed, now: number = NOW): readonly CheckEntry[] | undefined {
  return decide(seen, now).actions[0]?.entries;
}

describe("the answer to a workload with quota", () => {
  test("is the verdict on its reservation", () => {
    expect(written(observed())).toEqual([{ name: "room", ...READY, lastTransitionTime: AT }]);
  });

  test("waits for a verdict", () => {
    expect(decide(observed({ judged: undefined }), NOW)).toEqual({ actions: [], outcome: "Asking" });
  });

  test("is no verdict on an earlier reservation", () => {
    const again = workload("train", { entries: [entry({ lastTransitionTime: "2026-01-01T00:01:00Z" })] });
    const { judged } = observed();
    expect(decide(observed({ workload: again, judged }), NOW).outcome).toBe("Asking");
  });

  test("is written into each check that Legation answers", () => {
    const entries = [entry({ name: "near" }), entry({ name: "far" })];
    expect(written(observed({ workload: workload("train", { entries }) }))).toMatchObject([
      { name: "near", state: "Ready" },
      { name: "far", state: "Ready" },
    ]);
  });

  test.each([
    [undefined, 10],
    [1, 20],
    [2, 40],
    [3, 60],
    [20, 60],
  ])("after %s retries says when Kueue queues it again: in %s s", (retryCount, seconds) => {
    const found = workload("train", { entries: [entry(retryCount === undefined ? {} : { retryCount })] });
    const reservation = reservationOf(found, found.status?.admissionChecks ?? []);
    const judged = { state: "Retry", message: "west: full", reservation } as const;
    expect(written(observed({ workload: found, judged }))).toMatchObject([{ requeueAfterSeconds: seconds }]);
  });

  test.each([
    ["is evicted", workload("train", { conditions: ["Evicted"] })],
    ["has finished", workload("train", { conditions: ["Finished"] })],
    ["is deactivated", workload("train", { spec: { active: false } })],
    ["has no quota", workload("train", { status: { conditions: [] } })],
  ])("is withheld from one that %s", (_, found) => {
    expect(decide(observed({ workload: found }), NOW)).toEqual({ actions: [], outcome: "NoQuota" });
  });

  test("waits while the API server refuses it", () => {
    const heldUntil = NOW + MINUTE;
    expect(decide(observed({ heldUntil }), NOW)).toEqual({ actions: [], outcome: "Held", requeueAt: heldUntil });
    expect(decide(observed({ heldUntil }), heldUntil).actions).toHaveLength(1);
  });
});

describe("a workload that was admitted", () => {
  const admitted = workload("train", { conditions: ["Admitted"], entries: [entry({ state: "Ready" })] });
  const waiting = proxyPod({
    name: "train-0",
    metadata: { creationTimestamp: AT },
    status: {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", reason: "NotPlaced", message: "west: full" }],
    },
  });
  const due = NOW + 5 * MINUTE;
  const bound = proxyPod({ name: "train-1", metadata: { creationTimestamp: AT }, spec: { nodeName: "legation-west" } });

  test("is looked at again when the time of its pods is over", () => {
    const seen = observed({ workload: admitted, pods: [waiting] });
    expect(decide(seen, NOW + 1000)).toEqual({ actions: [], outcome: "Admitted", requeueAt: due });
  });

  test("is evicted with the reason of a pod that found no place in its time", () => {
    expect(written(observed({ workload: admitted, pods: [waiting, bound] }), due)).toEqual([
      {
        name: "room",
        state: "Retry",
        message: "1 of 2 pods of train found no place within 5m of the admission: train-0: west: full",
        lastTransitionTime: "2026-01-01T00:05:00Z",
        requeueAfterSeconds: 10,
      },
    ]);
  });

  test.each([
    ["have places", [bound]],
    ["are not there", []],
    ["are gated", [proxyPod({ metadata: { creationTimestamp: AT }, spec: { schedulingGates: [{ name: "own" }] } })]],
    ["have ended", [proxyPod({ metadata: { creationTimestamp: AT }, status: { phase: "Failed" } })]],
    ["came after that time", [proxyPod({ metadata: { creationTimestamp: "2026-01-01T00:05:01Z" } })]],
  ])("stays if its pods %s", (_, pods) => {
    expect(decide(observed({ workload: admitted, pods }), due)).toEqual({ actions: [], outcome: "Placed" });
  });

  test("is evicted once", () => {
    const retried = workload("train", { conditions: ["Admitted"], entries: [entry({ state: "Retry" })] });
    expect(decide(observed({ workload: retried, pods: [waiting] }), due).actions).toEqual([]);
    const entries = [entry({ retryCount: 1 })];
    const status = { conditions: [isTrue("QuotaReserved"), isTrue("Admitted"), isTrue("Evicted")] };
    const reset = workload("train", { entries, status });
    expect(decide(observed({ workload: reset, pods: [waiting] }), due).actions).toEqual([]);
  });

  test("has its time by the machine's clock, whatever the monotonic one says", () => {
    const seen = observed({ workload: admitted, pods: [waiting] });
    expect(decide(seen, 1000, due - MINUTE)).toMatchObject({ actions: [], requeueAt: 1000 + MINUTE });
    expect(decide(seen, 1000, due).actions).toHaveLength(1);
  });
});
