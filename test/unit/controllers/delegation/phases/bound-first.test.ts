import { describe, expect, test } from "vitest";
import { CLUSTER_ANNOTATION } from "../../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../../src/api/kubernetes.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import type { Needs } from "../../../../../src/placement/needs.ts";
import { toDelegate } from "../../../../../src/pods/delegate.ts";
import { held, overflowed } from "../decided.ts";
import { delegateOf, member, memory, world } from "../world.ts";

const now = Date.parse("2026-01-01T00:00:00Z");

describe("a pod that has overflowed", () => {
  test("gets its delegate in its member, with its author's own scheduler", () => {
    const volcano = { ...held, spec: { containers: [], ...held.spec, schedulerName: "volcano" } };
    const create = (proxy: Stored<Pod>) => decide(world(proxy, [member("west"), member("east")]), now).actions[0];
    expect(create(held)).toMatchObject({ type: "create", member: "west" });
    const delegate = (proxy: Stored<Pod>) => toDelegate(proxy, { id: "host-id", name: "cern" });
    expect(JSON.stringify(delegate(held))).not.toContain("default-scheduler");
    expect(delegate(volcano)).toMatchObject({ spec: { schedulerName: "volcano" } });
  });

  test("forwards its author's changes while it waits for a node there", () => {
    const tolerations = [{ key: "spot", operator: "Exists" as const }];
    const tolerating = { ...held, spec: { containers: [], ...held.spec, tolerations } };
    const west = member("west", { delegate: delegateOf(held) });
    expect(decide(world(tolerating, [west]), now).actions).toMatchObject([
      { type: "forward", member: "west", patch: { body: { spec: { tolerations } } } },
    ]);
  });

  test("keeps pods of its shape away once the member's scheduler has had its time", () => {
    const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "too full" }];
    const west = member("west", { delegate: delegateOf(held, { status: { phase: "Pending", conditions } }) });
    const attempts = new Map([["west", { since: now, refusalCount: 0 }]]);
    const at = (time: number) =>
      decide(world(held, [west], { memory: memory({ attempts, reported: { message: "west: too full" } }) }), time);
    expect(at(now)).toMatchObject({ actions: [], requeueAt: now + 30_000 });
    const refusal = { cluster: "west", reason: "Unschedulable", message: "too full" };
    expect(at(now + 30_000).actions).toMatchObject([{ type: "noteRefusal", proxyUid: "uid-1", refusal }]);
  });

  test("waits where its member refuses it, and tries again", () => {
    const refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" } as const;
    const attempts = new Map([["west", { since: now, refusalCount: 1, refusal, until: now + 1000 }]]);
    const at = (time: number) => decide(world(held, [member("west")], { memory: memory({ attempts }) }), time);
    expect(at(now)).toMatchObject({
      actions: [{ type: "report", message: "west: exceeded quota" }],
      requeueAt: now + 1000,
    });
    expect(at(now + 1000).actions).toMatchObject([{ type: "create" }]);
  });

  test("waits while its namespace is not opted in, since its placement is unknown", () => {
    const { actions, requeueAt } = decide(world(held, [member("west")], { optedIn: false }), now);
    expect(actions).toMatchObject([{ type: "report", reason: "NotOptedIn" }]);
    expect(requeueAt).toBe(now + 1000);
    expect(decide(world(held, [member("west")]), now).actions).toMatchObject([{ type: "create" }]);
  });

  test("waits for its dependencies there", () => {
    const decided = (needs: Needs) => decide(world(held, [member("west")], { needs: () => needs }), now);
    const missing = { reason: "FailedMount", message: 'configmap "a" not found' };
    expect(decided({ state: "missing", ...missing }).actions).toMatchObject([{ type: "report", ...missing }]);
    const refused = decided({ state: "there", in: () => ({ refused: "taken" }) });
    expect(refused.actions).toMatchObject([{ type: "report", reason: "RefusedByMember", message: "west: taken" }]);
    const preparing = { actions: [], outcome: "Preparing" };
    expect(decided({ state: "there", in: () => "unprepared" })).toMatchObject(preparing);
    expect(decided({ state: "awaited" })).toMatchObject(preparing);
  });

  test("does not run if it failed on the host before its delegate was created: its workload has replaced it", () => {
    const failed = { ...held, status: { phase: "Failed" } };
    expect(decide(world(failed, [member("west")]), now)).toEqual({ actions: [], outcome: "Finished" });
    const unheld = { ...overflowed(), status: { phase: "Failed" } };
    expect(decide(world(unheld, [member("west")]), now).actions).toEqual([]);
    const delegate = delegateOf(held);
    expect(decide(world(failed, [member("west", { delegate })]), now).actions).toMatchObject([{ type: "delete" }]);
  });

  test("is not created without its overrides if they do not fit", () => {
    const problem = "legation.dev/overrides: path /spec/containers/1 does not exist";
    const { actions, outcome } = decide(world(held, [member("west")], { misfit: () => problem }), now);
    expect(outcome).toBe("Waiting");
    expect(actions).toMatchObject([{ type: "report", reason: "RefusedByMember", message: `west: ${problem}` }]);
  });

  test("gets nothing while its member does not answer", () => {
    expect(decide(world(held, [member("west", { reachable: false }), member("east")]), now).actions).toEqual([]);
  });

  test.each([
    [30, [{ type: "deleteProxy", proxyUid: "uid-1" }]],
    [0, []],
  ])("goes when it is deleted with grace %i before it got its finalizer", (deletionGracePeriodSeconds, expected) => {
    const deletionTimestamp = "2026-01-01T00:00:00Z";
    const annotations = { [CLUSTER_ANNOTATION]: "west" };
    const proxy = overflowed({ metadata: { annotations, deletionTimestamp, deletionGracePeriodSeconds } });
    expect(decide(world(proxy, [member("west")]), now).actions).toEqual(expected);
  });
});
