import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../../../src/api/kubernetes.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import type { Action } from "../../../../../src/controllers/delegation/decision/decision.ts";
import { endedStatus, runningStatus } from "../../../../support/builders/pod.ts";
import { deleting, names, now } from "../decided.ts";
import { boundProxy, delegateOf, member, world } from "../world.ts";

describe("a bound proxy", () => {
  test("gets its delegate's status in one write", () => {
    const proxy = boundProxy();
    const delegate = delegateOf(proxy, { spec: { nodeName: "n" }, status: runningStatus() });
    const { actions, requeueAt } = decide(world(proxy, [member("west", { delegate })]), now);
    expect(names(actions)).toEqual(["status"]);
    // A refused status is not repeated for five minutes, and an ended delegate causes no further event.
    expect(requeueAt).toBeGreaterThan(now + 300_000);
  });

  test("gets no write when it shows the status already", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    expect(decide(world(proxy, [member("west", { delegate })]), now)).toEqual({ actions: [], outcome: "Running" });
  });

  test("gets status before it forwards changes, and gates first", () => {
    const spec = { nodeName: "legation-west", readinessGates: [{ conditionType: "example.com/open" }] };
    const first = boundProxy({ spec });
    const delegate = delegateOf(first, { spec: { ...first.spec, nodeName: "n" }, status: runningStatus() });
    const gate = { type: "example.com/open", status: "True" };
    const changed = boundProxy({
      metadata: { labels: { changed: "yes" } },
      spec: { ...spec, ephemeralContainers: [{ name: "debugger", image: "tool" }] },
      status: { phase: "Pending", conditions: [gate] },
    });
    const nextFor = (there: Stored<Pod>) =>
      decide(world(changed, [member("west", { delegate: there })]), now).actions.map((action) =>
        action.type === "forward" ? `forward to ${action.patch.subresource}` : action.type,
      );
    expect(nextFor(delegate)).toEqual(["status", "forward to status"]);
    // Writes go one after the other: each names the version of the delegate that it was decided on.
    const opened = { ...delegate, status: { ...delegate.status, conditions: [gate] } };
    expect(nextFor(opened)).toEqual(["status", "forward to ephemeralcontainers"]);
    const { ephemeralContainers = [] } = changed.spec ?? {};
    const debugged = { ...opened, spec: { containers: [], ...opened.spec, ephemeralContainers } };
    expect(nextFor(debugged)).toEqual(["status", "forward to undefined"]);
  });

  test("still gets its delegate's kubelet's additions after its end", () => {
    const proxy = boundProxy({ status: endedStatus(0) });
    const sandbox = { type: "PodReadyToStartContainers", status: "False" };
    const delegate = delegateOf(proxy, { status: { ...endedStatus(0), conditions: [sandbox] } });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["status"]);
  });

  describe("with a delegate that is being deleted in its member", () => {
    const owned = (kind: string, apiVersion = "apps/v1"): ReturnType<typeof boundProxy> =>
      boundProxy({
        metadata: { ownerReferences: [{ apiVersion, kind, name: "web", uid: "owner", controller: true }] },
        status: runningStatus(),
      });
    const drained = {
      ...runningStatus(),
      conditions: [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" }],
    };
    const decided = (proxy: ReturnType<typeof boundProxy>, grace = 45): readonly Action[] => {
      const metadata = { ...deleting, deletionGracePeriodSeconds: grace };
      const delegate = delegateOf(proxy, { metadata, status: drained });
      return decide(world(proxy, [member("west", { delegate })]), now).actions;
    };
    const evictions = (proxy: ReturnType<typeof boundProxy>, grace?: number): readonly Action[] =>
      decided(proxy, grace).filter(({ type }) => type === "evict");

    test("is deleted with the same grace period, so that its workload replaces it now", () => {
      for (const kind of ["ReplicaSet", "StatefulSet"]) {
        expect(evictions(owned(kind))).toEqual([{ type: "evict", proxyUid: "uid-1", graceSeconds: 45 }]);
      }
      expect(evictions(owned("Job", "batch/v1"), 0)).toEqual([{ type: "evict", proxyUid: "uid-1", graceSeconds: 1 }]);
    });

    test("stays if no controller, or an engine, would replace it, and gets the end", () => {
      expect(evictions(boundProxy({ status: runningStatus() }))).toEqual([]);
      expect(evictions(owned("Workflow", "argoproj.io/v1alpha1"))).toEqual([]);
    });

    test("is set not Ready, once, where it stays", () => {
      const ready = { type: "Ready", status: "True", lastTransitionTime: "2026-02-03T04:00:00Z" };
      const running = { ...runningStatus(), conditions: [ready] };
      const proxy = boundProxy({ status: running });
      const delegate = delegateOf(proxy, { metadata: deleting, status: running });
      const west = member("west", { delegate });
      const at = new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
      expect(decide(world(proxy, [west]), now).actions).toMatchObject([
        { type: "status", patch: { status: { conditions: [{ ...ready, status: "False", lastTransitionTime: at }] } } },
      ]);
      const told = boundProxy({ status: { ...running, conditions: [{ ...ready, status: "False" }] } });
      expect(decide(world(told, [west]), now + 60_000).actions).toEqual([]);
    });

    test("is not marked as disrupted before its delegate has ended", () => {
      const types = (proxy: ReturnType<typeof boundProxy>): string[] =>
        decided(proxy).flatMap((action) =>
          action.type === "status" && Array.isArray(action.patch.status.conditions)
            ? action.patch.status.conditions.map((condition: { type: string }) => condition.type)
            : [],
        );
      expect(types(boundProxy({ status: runningStatus() }))).not.toContain("DisruptionTarget");
      const evicted = delegateOf(boundProxy(), { metadata: deleting, status: drained });
      const lost = decide(world(boundProxy({ status: runningStatus() }), [member("west", { departed: evicted })]), now);
      expect(JSON.stringify(lost.actions)).toContain('"reason":"EvictionByEvictionAPI"');
      // A single write carries both.
      const metadata = { ...deleting, deletionGracePeriodSeconds: 45 };
      expect(types(boundProxy({ metadata, status: runningStatus() }))).not.toContain("DisruptionTarget");
      const ended = delegateOf(boundProxy(), {
        metadata: deleting,
        status: { ...endedStatus(143), conditions: drained.conditions },
      });
      const told = decide(
        world(boundProxy({ metadata, status: runningStatus() }), [member("west", { delegate: ended })]),
        now,
      );
      expect(JSON.stringify(told.actions)).toContain('"reason":"EvictionByEvictionAPI"');
    });
  });

  test("lets no delegate run on once it is terminal", () => {
    const proxy = boundProxy({ status: endedStatus(1) });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["delete west"]);
  });
});
