import { describe, expect, test } from "vitest";
import { DELEGATE_FINALIZER } from "../../../../../src/api/keys.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { endedStatus, proxyPod, runningStatus } from "../../../../support/builders/pod.ts";
import { deleting, names, now } from "../decided.ts";
import { boundProxy, delegateOf, gone, member, world } from "../world.ts";

describe("a proxy that is being deleted", () => {
  const ending = { metadata: { ...deleting, deletionGracePeriodSeconds: 17 }, status: runningStatus() };

  test("is released with its last status, grace 0 and without the finalizer once the delegate is gone", () => {
    const proxy = boundProxy(ending);
    const departed = delegateOf(proxy, { status: endedStatus(143) });
    const { actions } = decide(world(proxy, [member("west", { departed })]), now);
    expect(names(actions)).toEqual(["status", "deleteProxy", "removeFinalizer"]);
  });

  test("needs one write only if it had ended", () => {
    const metadata = { ...deleting, deletionGracePeriodSeconds: 0 };
    const proxy = boundProxy({ metadata, status: endedStatus(0) });
    const departed = delegateOf(proxy, { status: endedStatus(0) });
    expect(names(decide(world(proxy, [member("west", { departed })]), now).actions)).toEqual(["removeFinalizer"]);
  });

  test("goes at once without a delegate anywhere", () => {
    const proxy = proxyPod({ metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
    expect(names(decide(world(proxy, [member("west"), member("east")]), now).actions)).toEqual(["removeFinalizer"]);
  });

  test("is left to the other finalizers that hold it", () => {
    const metadata = { ...ending.metadata, deletionGracePeriodSeconds: 0, finalizers: ["other"] };
    expect(decide(world(boundProxy({ metadata }), [member("west")]), now).actions).toEqual([]);
  });

  test.each([
    ["bound", boundProxy],
    ["unbound", proxyPod],
  ])("has no running delegate once its member returns, while other finalizers hold it (%s)", (_, make) => {
    const metadata = {
      ...ending.metadata,
      deletionGracePeriodSeconds: 0,
      finalizers: ["batch.kubernetes.io/job-tracking"],
    };
    const proxy = make({ metadata, status: endedStatus(137) });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    const away = member("west", { delegate, reachable: false });
    expect(decide(world(proxy, [away]), now)).toEqual({ actions: [], outcome: "Released" });
    // The delegate's own grace period counts, since the caller gave none.
    expect(decide(world(proxy, [member("west", { delegate })]), now)).toEqual({
      actions: [{ type: "delete", member: "west", uid: "delegate-uid" }],
      outcome: "Released",
    });
  });

  describe("with a delegate that another member claims", () => {
    const forged = (proxy: ReturnType<typeof boundProxy>): ReturnType<typeof member> =>
      member("east", { delegate: delegateOf(proxy, { uid: "forged", status: runningStatus() }) });

    test("goes by force while its own member does not answer", () => {
      const proxy = boundProxy({ ...ending, metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
      const west = member("west", { reachable: false, delegate: delegateOf(proxy, { status: runningStatus() }) });
      expect(names(decide(world(proxy, [west, forged(proxy)]), now).actions)).toEqual([
        "removeFinalizer",
        "delete east",
      ]);
    });
  });

  describe("in a member that does not answer", () => {
    const lost = (proxy: ReturnType<typeof boundProxy>): ReturnType<typeof member> =>
      member("west", { reachable: false, delegate: delegateOf(proxy, { status: runningStatus() }) });

    test("goes when it was deleted by force", () => {
      const proxy = boundProxy({ ...ending, metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
      expect(names(decide(world(proxy, [lost(proxy)]), now).actions)).toEqual(["removeFinalizer"]);
    });

    test("goes when the virtual node is out of service", () => {
      const proxy = boundProxy(ending);
      const observed = world(proxy, [lost(proxy)], { outOfService: () => true });
      expect(names(decide(observed, now).actions)).toEqual(["status", "deleteProxy", "removeFinalizer"]);
    });

    test("goes when its delegate was seen to have ended", () => {
      const proxy = boundProxy({ metadata: { ...deleting, deletionGracePeriodSeconds: 0 }, status: endedStatus(0) });
      const west = member("west", { reachable: false, delegate: delegateOf(proxy, { status: endedStatus(0) }) });
      expect(names(decide(world(proxy, [west]), now).actions)).toEqual(["removeFinalizer"]);
    });
  });

  test("keeps its final status visible while another finalizer holds it", () => {
    const finalizers = [DELEGATE_FINALIZER, "batch.kubernetes.io/job-tracking"];
    const metadata = { ...deleting, deletionGracePeriodSeconds: 0, finalizers };
    const proxy = boundProxy({ metadata, status: runningStatus() });
    expect(names(decide(world(proxy, [member("west")], gone), now).actions)).toEqual(["status", "removeFinalizer"]);
  });
});
