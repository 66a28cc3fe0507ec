import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { OwnedProxies } from "../../../src/scheduling/owned-proxies.ts";
import { endedStatus, proxyPod, runningStatus } from "../../support/builders/pod.ts";

interface Parts {
  readonly owner?: string;
  readonly member?: string;
  readonly isReady?: boolean;
  readonly hash?: string;
  /** The deletion cost that Legation wrote, and the one that the pod has. */
  readonly cost?: readonly [own: string, now: string];
}

/** Returns a proxy of a ReplicaSet; bound to the member, if there is one. */
function replica(uid: string, { owner = "web", member, isReady = false, hash, cost }: Parts = {}): Stored<Pod> {
  const name = hash === undefined ? owner : `web-${hash}`;
  const annotations =
    cost === undefined
      ? {}
      : { "legation.dev/deletion-cost": cost[0], "controller.kubernetes.io/pod-deletion-cost": cost[1] };
  return proxyPod({
    name: uid,
    uid,
    metadata: {
      annotations,
      ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name, uid: owner, controller: true }],
      ...(hash === undefined ? {} : { labels: { "pod-template-hash": hash } }),
    },
    spec: member === undefined ? {} : { nodeName: `legation-${member}` },
    status: isReady ? runningStatus() : { phase: "Pending" },
  });
}

/** Returns the counts of these proxies, seen in this order. */
function counting(...proxies: readonly Stored<Pod>[]): OwnedProxies {
  const owned = new OwnedProxies();
  for (const proxy of proxies) owned.update(proxy);
  return owned;
}

describe("the place of a replica", () => {
  test("counts from the decision on, and follows the pod once it is bound", () => {
    const owned = counting(replica("a"), replica("b"));
    owned.place("a", "west");
    expect([owned.placed("web"), owned.total("web")]).toEqual([{ west: 1 }, 1]);
    owned.update(replica("a", { member: "east" }));
    owned.place("a", "west");
    expect(owned.placed("web")).toEqual({ east: 1 });
  });

  test("is not taken from a decision by a delegate that is seen elsewhere", () => {
    const owned = counting(replica("a"), replica("b"));
    owned.place("a", "west");
    owned.noteDelegate("a", "east");
    owned.noteDelegate("b", "east");
    expect(owned.placed("web")).toEqual({ west: 1, east: 1 });
  });

  test.each<[string, Stored<Pod>]>([
    ["ended", { ...replica("a", { member: "west" }), status: endedStatus(0) }],
    ["lost its controller", proxyPod({ name: "a", uid: "a", spec: { nodeName: "legation-west" } })],
    [
      "is being deleted",
      { ...replica("a"), metadata: { ...replica("a").metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } },
    ],
  ])("counts no more when the pod %s", (_, proxy) => {
    const owned = counting(replica("a", { member: "west" }), replica("b", { member: "west" }), proxy);
    expect([owned.placed("web"), owned.total("web"), owned.unready("web")]).toEqual([{ west: 1 }, 1, 1]);
  });

  test.each<[string, Parts]>([
    ["has a node", { member: "west" }],
    ["has a place and no node yet", {}],
  ])("goes to the new owner of a pod that %s, although no moment without an owner was seen", (_, parts) => {
    const owned = counting(replica("a", { ...parts, isReady: true }), replica("b", { owner: "new" }));
    owned.place("a", "west");
    owned.update(replica("a", { ...parts, owner: "new", isReady: true }));
    expect([owned.has("web"), owned.placed("new"), owned.total("new")]).toEqual([false, { west: 1 }, 1]);
    expect(owned.unready("new")).toBe(parts.member === undefined ? 2 : 1);
  });

  test("has a number among the owner's replicas, and one among those of the member", () => {
    const owned = counting(
      replica("a", { member: "west" }),
      replica("b", { member: "east" }),
      replica("c", { member: "west" }),
    );
    expect([owned.get("c")?.ordinal, owned.get("c")?.nth, owned.get("b")?.nth]).toEqual([3, 2, 1]);
  });
});

describe("the members that a scale-down leaves first", () => {
  test("are those of replicas that are not bound, then not ready, then of the least deletion cost", () => {
    const owned = counting(
      replica("a", { member: "north", isReady: true, cost: ["5", "5"] }),
      replica("b", { member: "west", isReady: true, cost: ["-7", "-7"] }),
      replica("c", { member: "south" }),
      replica("d"),
    );
    owned.place("d", "east");
    expect(owned.leaving("web")).toEqual(["east", "south", "west", "north"]);
    owned.update(replica("c", { member: "south", isReady: true, cost: ["9", "9"] }));
    expect(owned.leaving("web")).toEqual(["east", "west", "north", "south"]);
  });

  test("are of the replicas that were placed last, where no cost of Legation's counts", () => {
    const changed = ["-9", "100"] as const;
    const owned = counting(
      replica("a", { member: "west", isReady: true, cost: changed }),
      replica("b", { member: "east", isReady: true }),
    );
    expect(owned.leaving("web")).toEqual(["east", "west"]);
  });
});

describe("the ReplicaSets of one Deployment", () => {
  const old = (uid: string, isReady = true) => replica(uid, { owner: "old", hash: "1", member: "west", isReady });
  const next = (uid: string) => replica(uid, { owner: "new", hash: "2" });

  test("know each other while they have placed replicas", () => {
    const owned = counting(old("a"), next("b"));
    expect([owned.others("new"), owned.others("old")]).toEqual([["old"], []]);
    owned.place("b", "west");
    expect(owned.others("old")).toEqual(["new"]);
  });

  test("remember how many replicas changed at once until the update is over", () => {
    const owned = counting(old("a"), old("b"), next("c"), next("d"));
    expect(owned.atOnce("new")).toBe(2);
    owned.remove("d");
    expect(owned.atOnce("new")).toBe(2);
    for (const uid of ["a", "b"]) owned.remove(uid);
    expect([owned.has("old"), owned.atOnce("new")]).toEqual([false, 1]);
  });
});

test("counts replicas of a member named like a field of every object", () => {
  const owned = counting(replica("a", { member: "constructor" }), replica("b", { member: "constructor" }));
  expect(owned.placed("web")).toEqual({ constructor: 2 });
  expect(owned.placed("other").constructor).toBeUndefined();
});
