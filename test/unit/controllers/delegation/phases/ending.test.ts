import { describe, expect, test } from "vitest";
import { DELEGATE_FINALIZER, DELEGATE_UID_ANNOTATION } from "../../../../../src/api/keys.ts";
import type { Pod, PodStatus, Stored } from "../../../../../src/api/kubernetes.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { endedStatus, type PodParts, proxyPod, runningStatus } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, gone, member, memory, type TestMember, type WorldParts, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const deletionTimestamp = "2026-02-03T04:05:00Z";

describe("a proxy that is being deleted", () => {
  test.each<[string, string | undefined, string]>([
    ["waits for a member that has not been read and may have its delegate", undefined, "Ending"],
    ["waits for no unread member that it may not go to", "not named", "Released"],
  ])("%s, if it is unbound after a restart", (_, excluded, outcome) => {
    const proxy = proxyPod({ metadata: { deletionTimestamp, deletionGracePeriodSeconds: 0 } });
    const west = member("west", { reachable: false, read: false });
    const excludes = ({ name }: { readonly name: string }) => (name === "west" ? excluded : undefined);
    const inherited = world(proxy, [west, member("east")], { memory: memory({ fresh: false }), excludes });
    expect(decide(inherited, now).outcome).toBe(outcome);
  });

  describe("collected by the pod garbage collector without a leader", () => {
    const collectedAt = (lastTransitionTime: string) => [
      { type: "DisruptionTarget", status: "True", reason: "DeletionByPodGC", lastTransitionTime },
    ];
    const conditions = collectedAt(deletionTimestamp);
    const collected = (parts: object = {}) =>
      boundProxy({
        metadata: { deletionTimestamp, deletionGracePeriodSeconds: 0 },
        status: { ...runningStatus(), phase: "Failed", conditions },
        ...parts,
      });

    test("has its delegate ended with the delegate's own grace period, and waits for it", () => {
      const proxy = collected();
      const west = member("west", { delegate: delegateOf(proxy, { status: runningStatus() }) });
      const ending = decide(world(proxy, [west]), now);
      expect(ending).toEqual({ actions: [{ type: "delete", member: "west", uid: "delegate-uid" }], outcome: "Ending" });
      const forced = collected({ status: runningStatus() });
      expect(decide(world(forced, [west]), now).actions).toMatchObject([
        { type: "removeFinalizer" },
        { type: "delete", graceSeconds: 0 },
      ]);
    });

    test("has a delegate without its marks ended with its own grace period, too", () => {
      const { actions } = decide(world(collected(), [member("west")]), now);
      expect(actions).toMatchObject([{ type: "restoreMarks", ends: {} }]);
      expect(actions[0]).not.toHaveProperty("ends.gracePeriodSeconds");
    });

    test("waits for a member that has not been read, unless that is out of service", () => {
      const west = member("west", { reachable: false, read: false });
      expect(decide(world(collected(), [west]), now).outcome).toBe("Ending");
      expect(decide(world(collected(), [west], { outOfService: () => true }), now).outcome).toBe("Released");
      // A forced deletion waits for no member.
      expect(decide(world(collected({ status: runningStatus() }), [west]), now).outcome).toBe("Released");
      // The member's own collector had written the same, long before.
      const inMember = { ...runningStatus(), phase: "Failed", conditions: collectedAt("2023-01-01T00:00:00Z") };
      expect(decide(world(collected({ status: inMember }), [west]), now).outcome).toBe("Released");
      // The member's Cluster is gone, too.
      expect(decide(world(collected(), []), now).outcome).toBe("Released");
    });
  });

  test("does not get the end of an earlier pod of its name", () => {
    const metadata = { deletionTimestamp, deletionGracePeriodSeconds: 30 };
    const proxy = boundProxy({ metadata, status: runningStatus() });
    const departed = delegateOf(proxyPod({ uid: "uid-0" }), { uid: "earlier", status: endedStatus(0) });
    const { actions } = decide(world(proxy, [member("west", { departed })], gone), now);
    expect(actions).toMatchObject([
      { type: "status", patch: { status: { phase: "Failed" } } },
      { type: "deleteProxy" },
      { type: "removeFinalizer" },
    ]);
  });

  describe("by force while other finalizers hold it", () => {
    const JOBS = "batch.kubernetes.io/job-tracking";
    const held = (finalizers: string[], status = runningStatus()) =>
      boundProxy({ metadata: { deletionTimestamp, deletionGracePeriodSeconds: 0, finalizers }, status });
    const forced = held([DELEGATE_FINALIZER, JOBS]);
    const decided = (proxy: Stored<Pod>, parts: object = {}, at = now) => {
      const west = member("west", { delegate: delegateOf(proxy, { status: runningStatus(), ...parts }) });
      return decide(world(proxy, [west]), at);
    };
    const asked = { deletionTimestamp, deletionGracePeriodSeconds: 1 };
    const remove = (graceSeconds: number) => ({ type: "delete", member: "west", uid: "delegate-uid", graceSeconds });

    test.each<[string, Stored<Pod>, object, object[]]>([
      ["with the kubelet's shortest grace, so that it tells how its containers ended", forced, {}, [remove(1)]],
      [
        "with grace 1, where it had more time before",
        forced,
        { metadata: { ...asked, deletionGracePeriodSeconds: 30 } },
        [remove(1)],
      ],
      ["once", forced, { metadata: asked }, []],
      [
        "at once, where the pod shows its end already",
        held([DELEGATE_FINALIZER, JOBS], endedStatus(3)),
        {},
        [remove(0)],
      ],
    ])("has its delegate deleted %s", (_, proxy, parts, actions) => {
      expect(decided(proxy, parts).actions).toEqual(actions);
    });

    test("has an ended delegate deleted at once, and shows the end", () => {
      expect(decided(forced, { metadata: asked, status: endedStatus(3) }).actions).toMatchObject([
        remove(0),
        {
          type: "status",
          patch: { status: { phase: "Failed", containerStatuses: [{ state: { terminated: { exitCode: 3 } } }] } },
        },
      ]);
    });

    test("does not wait for a silent kubelet", () => {
      const over = Date.parse(deletionTimestamp) + 10_000;
      expect(decided(forced, { metadata: asked })).toMatchObject({ actions: [], requeueAt: over });
      expect(decided(forced, { metadata: asked }, over - 1).actions).toEqual([]);
      expect(decided(forced, { metadata: asked }, over).actions).toEqual([remove(0)]);
      // The host's clock is ahead of this one.
      expect(decided(forced, { metadata: asked }, over - 60_000).actions).toEqual([remove(0)]);
    });
  });

  describe("by force", () => {
    const metadata = { deletionTimestamp, deletionGracePeriodSeconds: 0 };
    const forced = boundProxy({ metadata, status: runningStatus() });
    const release = { type: "removeFinalizer", proxyUid: "uid-1" };
    const end = { type: "delete", member: "west", uid: "delegate-uid", graceSeconds: 0, forced: true };
    const running = (parts: PodParts = {}) => delegateOf(forced, { status: runningStatus(), ...parts });
    const decided = (parts: Partial<TestMember>, facts: WorldParts = {}) =>
      decide(world(forced, [member("west", parts), member("east")], facts), now);

    test("goes before its delegate, which is deleted at once", () => {
      expect(decided({ delegate: running() })).toEqual({ actions: [release, end], outcome: "Released" });
    });

    test("shortens the grace period that its delegate had before, and deletes no delegate twice", () => {
      const asked = (deletionGracePeriodSeconds: number) =>
        decided({ delegate: running({ metadata: { deletionTimestamp, deletionGracePeriodSeconds } }) }).actions;
      expect(asked(30)).toEqual([release, end]);
      expect(asked(0)).toEqual([release]);
    });

    test("waits for no member: one that does not answer, or may still make the delegate", () => {
      expect(decided({ delegate: running(), reachable: false }).actions).toEqual([release]);
      expect(decided({ reachable: false, read: false }).actions).toEqual([release]);
      const bound = boundProxy({ metadata: { ...metadata, annotations: { [DELEGATE_UID_ANNOTATION]: "" } } });
      const { [DELEGATE_UID_ANNOTATION]: _, ...annotations } = bound.metadata.annotations ?? {};
      const unrecorded = { ...bound, metadata: { ...bound.metadata, annotations } };
      const uncertain = world(unrecorded, [member("west")], { memory: memory({ uncertain: "west" }) });
      expect(decide(uncertain, now).actions).toEqual([release]);
    });

    test("goes before a delegate that is not on its record, too", () => {
      expect(decided({ delegate: running({ uid: "second" }) }).actions).toEqual([release, { ...end, uid: "second" }]);
    });

    test("has its member asked for a delegate that lost its marks, and goes once there is none", () => {
      const { actions, outcome } = decided({});
      expect(outcome).toBe("Looking");
      expect(actions).toMatchObject([{ type: "restoreMarks", member: "west", ends: { gracePeriodSeconds: 0 } }]);
      expect(decided({}, gone).actions).toEqual([release]);
      expect(decided({ departed: running({ metadata }) }).actions).toEqual([release]);
    });

    test("does not tell first that its writes are taken again", () => {
      const conditions = [{ type: "legation.dev/Refused", status: "True", reason: "DeletionRefused", message: "no" }];
      const shown = boundProxy({ metadata, status: { ...runningStatus(), conditions } });
      expect(decide(world(shown, [member("west", { delegate: running() })]), now).actions).toEqual([release, end]);
    });

    test("waits while it has ended and its delegate runs: any deletion of an ended pod has grace 0", () => {
      const ended = boundProxy({ metadata, status: endedStatus(1) });
      const of = (status: PodStatus) =>
        decide(world(ended, [member("west", { delegate: delegateOf(ended, { status }) })]), now);
      expect(of(runningStatus())).toMatchObject({ outcome: "Ending", actions: [{ type: "delete" }] });
      expect(of(endedStatus(1)).actions).toEqual([release, end]);
    });
  });
});
