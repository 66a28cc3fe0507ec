import { describe, expect, test } from "vitest";
import { DELEGATE_FINALIZER, DELEGATE_UID_ANNOTATION } from "../../../../../src/api/keys.ts";
import type { Pod, PodStatus, Stored } from "../../../../../src/api/kubernetes.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import type { Action } from "../../../../../src/controllers/delegation/decision/decision.ts";
import { endedStatus, type PodParts, proxyPod, runningStatus } from "../../../../support/builders/pod.ts";
import { deleting, names, now } from "../decided.ts";
import { boundProxy, delegateOf, gone, member, memory, type TestMember, type WorldParts, world } from "../world.ts";

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

  const ending = { metadata: { ...deleting, deletionGracePeriodSeconds: 17 }, status: runningStatus() };

  test("has its delegate deleted with the caller's grace period", () => {
    const proxy = boundProxy(ending);
    const delegate = delegateOf(proxy, { status: runningStatus() });
    expect(decide(world(proxy, [member("west", { delegate })]), now).actions).toEqual([
      { type: "delete", member: "west", uid: "delegate-uid", graceSeconds: 17 },
    ]);
  });

  test("has it deleted once, and again only with a shorter period", () => {
    const proxy = boundProxy(ending);
    const asked = (deletionGracePeriodSeconds: number): string[] => {
      const metadata = { ...deleting, deletionGracePeriodSeconds };
      const delegate = delegateOf(proxy, { metadata, status: runningStatus() });
      return names(decide(world(proxy, [member("west", { delegate })]), now).actions);
    };
    expect(asked(17)).toEqual([]);
    expect(asked(30)).toEqual(["delete west"]);
  });

  test("keeps the grace period of an override, unless the caller asked for another one", () => {
    const asked = (deletionGracePeriodSeconds: number): readonly Action[] => {
      const metadata = { ...ending.metadata, deletionGracePeriodSeconds };
      const proxy = boundProxy({ metadata, spec: { terminationGracePeriodSeconds: 30 }, status: runningStatus() });
      const spec = { terminationGracePeriodSeconds: 600 };
      const delegate = delegateOf(proxy, { spec, status: runningStatus() });
      return decide(world(proxy, [member("west", { delegate })]), now).actions;
    };
    expect(asked(30)[0]).toEqual({ type: "delete", member: "west", uid: "delegate-uid" });
    expect(asked(5)[0]).toEqual({ type: "delete", member: "west", uid: "delegate-uid", graceSeconds: 5 });
  });

  test("ends even if its grace period is beyond JavaScript's integers", () => {
    const forever = JSON.rawJSON("9223372036854775807") as unknown as number;
    const proxy = boundProxy({ ...ending, metadata: { ...ending.metadata, deletionGracePeriodSeconds: forever } });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    const { actions } = decide(world(proxy, [member("west", { delegate })]), now);
    expect(actions[0]).toMatchObject({ type: "delete", graceSeconds: Number.MAX_SAFE_INTEGER });
    expect(names(decide(world(proxy, [member("west")], gone), now).actions)).toEqual([
      "status",
      "deleteProxy",
      "removeFinalizer",
    ]);
  });

  test("still gets status while its delegate ends", () => {
    const proxy = boundProxy(ending);
    const metadata = { ...deleting, deletionGracePeriodSeconds: 17 };
    const delegate = delegateOf(proxy, { metadata, status: endedStatus(143) });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["status"]);
  });

  test("takes its delegate with it, which keeps its own grace period, if it is unbound", () => {
    const proxy = proxyPod({ metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
    const delegate = delegateOf(proxy, { spec: { nodeName: "n" } });
    expect(decide(world(proxy, [member("west", { delegate })]), now).actions).toEqual([
      { type: "delete", member: "west", uid: "delegate-uid" },
    ]);
  });

  test("goes only after the member was asked if a response was lost", () => {
    const proxy = proxyPod({ metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
    const observed = world(proxy, [member("west")], { memory: memory({ uncertain: "west" }) });
    expect(names(decide(observed, now).actions)).toEqual(["confirmCreated west"]);
  });

  describe("with a delegate that another member claims", () => {
    const forged = (proxy: ReturnType<typeof boundProxy>): ReturnType<typeof member> =>
      member("east", { delegate: delegateOf(proxy, { uid: "forged", status: runningStatus() }) });

    test("ends with its own delegate, and waits for the other one as long as a kubelet may take", () => {
      const proxy = boundProxy(ending);
      const delegate = delegateOf(proxy, { status: runningStatus() });
      const running = decide(world(proxy, [forged(proxy), member("west", { delegate })]), now);
      expect(names(running.actions)).toEqual(["delete west", "delete east"]);
      const departed = delegateOf(proxy, { status: endedStatus(143) });
      const gone = world(proxy, [forged(proxy), member("west", { departed })]);
      expect(names(decide(gone, now).actions)).toEqual(["delete east"]);
      const { deletionTimestamp } = proxy.metadata;
      const { actions, requeueAt } = decide(gone, Date.parse(deletionTimestamp ?? "") + 10_000);
      expect(names(actions)).toEqual(["status", "deleteProxy", "removeFinalizer", "delete east"]);
      expect(actions.at(-1)).toEqual({ type: "delete", member: "east", uid: "forged", surplus: true });
      expect(requeueAt).toBe(Date.parse(deletionTimestamp ?? "") + 20_000);
    });

    test("waits for it if its own Cluster is gone and that very delegate is shown under another name", () => {
      const proxy = boundProxy(ending);
      const again = member("west-again", { delegate: delegateOf(proxy, { status: runningStatus() }) });
      const { actions, outcome } = decide(world(proxy, [again]), now);
      expect(names(actions)).toEqual(["delete west-again"]);
      expect(outcome).toBe("Ending");
    });

    test("waits for its recorded delegate under another name without reconciling again and again", () => {
      const proxy = boundProxy(ending);
      const again = member("west-again", {
        delegate: delegateOf(proxy, { metadata: deleting, status: runningStatus() }),
      });
      const later = Date.parse(proxy.metadata.deletionTimestamp ?? "") + 60_000;
      const { outcome, requeueAt } = decide(world(proxy, [again]), later);
      expect({ outcome, requeueAt }).toEqual({ outcome: "Ending", requeueAt: undefined });
    });
  });

  test("waits for its kubelet's end even without its finalizer", () => {
    const proxy = boundProxy({ ...ending, metadata: { ...ending.metadata, finalizers: [] } });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["delete west"]);
    const departed = delegateOf(proxy, { status: endedStatus(143) });
    expect(names(decide(world(proxy, [member("west", { departed })]), now).actions)).toEqual(["status", "deleteProxy"]);
  });

  describe("in a member that does not answer", () => {
    const lost = (proxy: ReturnType<typeof boundProxy>): ReturnType<typeof member> =>
      member("west", { reachable: false, delegate: delegateOf(proxy, { status: runningStatus() }) });

    test("waits, as on a lost node", () => {
      const proxy = boundProxy(ending);
      expect(decide(world(proxy, [lost(proxy)]), now)).toEqual({ actions: [], outcome: "Ending" });
    });

    test("is set not Ready, once, while its node does not report", () => {
      const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status: "True" }));
      const proxy = boundProxy({ ...ending, status: { ...runningStatus(), conditions } });
      const unheard = { unheard: () => true };
      const { actions, outcome } = decide(world(proxy, [lost(proxy)], unheard), now);
      expect(outcome).toBe("Ending");
      expect(actions).toMatchObject([
        { type: "status", patch: { status: { conditions: [{ type: "Ready", status: "False" }] } } },
      ]);
      const shown = boundProxy({
        ...ending,
        status: { ...runningStatus(), conditions: [{ type: "Ready", status: "False" }] },
      });
      expect(decide(world(shown, [lost(shown)], unheard), now).actions).toEqual([]);
    });

    test("keeps its readiness for another member that may have a delegate of it", () => {
      const proxy = boundProxy({
        ...ending,
        status: { ...runningStatus(), conditions: [{ type: "Ready", status: "True" }] },
      });
      const west = member("west", { delegate: delegateOf(proxy, { metadata: deleting, status: proxy.status ?? {} }) });
      const east = member("east", { reachable: false });
      const observed = world(proxy, [west, east], { unheard: () => true, memory: memory({ uncertain: "east" }) });
      expect(names(decide(observed, now).actions)).toEqual([]);
    });
  });
});
