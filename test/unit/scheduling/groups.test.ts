import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import type { RequestedPlacement } from "../../../src/api/annotations.ts";
import { CLUSTER_ANNOTATION } from "../../../src/api/keys.ts";
import type { ObjectKey, OwnerReference, Pod, Stored } from "../../../src/api/kubernetes.ts";
import { Groups, groupOf } from "../../../src/scheduling/groups.ts";
import { proxyPod } from "../../support/builders/pod.ts";

const flow = { id: "team/group/flow", text: "group flow" };

function podOf(uid: string, member?: string, parts: Partial<Pod["metadata"]> = {}): Stored<Pod> {
  const annotations: Record<string, string> = member === undefined ? {} : { [CLUSTER_ANNOTATION]: member };
  const spec = member === undefined ? {} : { nodeName: `legation-${member}` };
  return proxyPod({ uid, name: uid, spec, metadata: { annotations, ...parts } });
}

function owner(kind: string, uid: string, controller = true): OwnerReference {
  return { apiVersion: "v1", kind, name: uid, uid, controller };
}

describe("the group of a pod", () => {
  const driver = proxyPod({ uid: "driver", name: "driver" });
  const submitted = proxyPod({
    uid: "sub",
    name: "sub",
    metadata: { ownerReferences: [owner("SparkApplication", "app")] },
  });
  const known = new Map([driver, submitted].map((pod) => [pod.metadata.uid, pod]));
  const ownedBy = (...ownerReferences: OwnerReference[]): Stored<Pod> =>
    proxyPod({ uid: "exec", name: "exec", metadata: { ownerReferences, labels: { app: "web" } } });
  const byOwner: RequestedPlacement = { groupBy: { by: "owner" } };
  test.each<[string, Stored<Pod>, RequestedPlacement, string | undefined]>([
    ["is none by default", ownedBy(), {}, undefined],
    ["is its group annotation before all else", ownedBy(), { group: "g", ...byOwner }, "team/group/g"],
    ["is its controller's", ownedBy(owner("Job", "job")), byOwner, "team/owner/job"],
    ["is its own for a pod without owner", driver, byOwner, "team/owner/driver"],
    ["is its owner's, if a pod owns it", ownedBy(owner("Pod", "driver")), byOwner, "team/owner/driver"],
    [
      "is its owner's, if a pod owns it without controlling it",
      ownedBy(owner("Pod", "driver", false)),
      byOwner,
      "team/owner/driver",
    ],
    ["is the owner's of its owner", ownedBy(owner("Pod", "sub")), byOwner, "team/owner/app"],
    ["is its owner's, if the owner is not known", ownedBy(owner("Pod", "gone")), byOwner, "team/owner/gone"],
    ["is its label's", ownedBy(), { groupBy: { by: "label", key: "app" } }, "team/label/app=web"],
    ["is none if it lacks the label", ownedBy(), { groupBy: { by: "label", key: "tier" } }, undefined],
    ["is none if it lacks a label named toString", ownedBy(), { groupBy: { by: "label", key: "toString" } }, undefined],
  ])("%s", (_, pod, placement, id) => {
    expect(groupOf(pod, placement, (uid) => known.get(uid))?.id).toBe(id);
  });

  test("is found even if pods own each other", () => {
    const pods = new Map(
      [
        ["a", "b"],
        ["b", "a"],
      ].map(([uid = "", other = ""]) => [uid, podOf(uid, undefined, { ownerReferences: [owner("Pod", other)] })]),
    );
    let asked = 0;
    const find = (uid: string) => {
      asked += 1;
      if (asked > 10) throw new Error("without end");
      return pods.get(uid);
    };
    expect(groupOf(podOf("c", undefined, { ownerReferences: [owner("Pod", "a")] }), byOwner, find)?.id).toBe(
      "team/owner/a",
    );
  });
});

describe("a group", () => {
  test("waits for no pod that is bound to a node of the host", () => {
    const told: ObjectKey[][] = [];
    const groups = new Groups((keys) => told.push([...keys]));
    for (const uid of ["a", "b"]) groups.update(podOf(uid), flow);
    groups.place("a", "west");
    const elsewhere = podOf("a");
    groups.update({ ...elsewhere, spec: { containers: [], nodeName: "host-node" } }, flow);
    expect(told).toEqual([["team/b"]]);
    expect(groups.mayEnter("b", "east")).toBe(true);
  });

  test("lets one pod look for a place, and the rest follow it where it is bound", () => {
    const told: ObjectKey[][] = [];
    const groups = new Groups((keys) => told.push([...keys]));
    groups.update(podOf("a"), flow);
    groups.update(podOf("b"), flow);
    expect(groups.mayEnter("a", "west")).toBe(true);
    groups.place("a", "west");
    expect(groups.mayEnter("b", "west")).toBe(false);
    expect(groups.placeOf("b")).toMatchObject({ first: "team/a" });
    // The pod may still try another member.
    expect(groups.mayEnter("a", "east")).toBe(true);
    groups.place("a", "east");
    groups.update(podOf("a", "east"), flow);
    expect(told).toEqual([["team/b"]]);
    expect(groups.mayEnter("b", "west")).toBe(false);
    expect(groups.mayEnter("b", "east")).toBe(true);
  });

  test("wakes waiting pods when it has lost its first pod, or that pod its member", () => {
    const told: ObjectKey[][] = [];
    const groups = new Groups((keys) => told.push([...keys]));
    for (const uid of ["a", "b"]) groups.update(podOf(uid), flow);
    groups.place("a", "west");
    groups.place("a", undefined);
    expect(told).toEqual([["team/a", "team/b"]]);
    groups.place("a", "west");
    groups.remove("a");
    expect(told[1]).toEqual(["team/b"]);
    expect(groups.mayEnter("b", "east")).toBe(true);
  });

  test("is held by succeeded pods, and not by those that have failed or are being deleted", () => {
    const groups = new Groups(() => undefined);
    groups.update(podOf("new"), flow);
    groups.update({ ...podOf("done", "west"), status: { phase: "Succeeded" } }, flow);
    expect(groups.placeOf("new")?.home).toBe("west");
    groups.update({ ...podOf("done", "west"), status: { phase: "Failed" } }, flow);
    expect(groups.placeOf("new")?.home).toBeUndefined();
    groups.update(podOf("leaving", "west", { deletionTimestamp: "2026-01-01T00:00:00Z" }), flow);
    expect(groups.placeOf("new")?.home).toBeUndefined();
  });

  test("knows the delegate of an earlier leader's proxy", () => {
    const groups = new Groups(() => undefined);
    for (const uid of ["a", "b"]) groups.update(podOf(uid), flow);
    groups.noteDelegate("a", "west");
    groups.noteDelegate("a", "east");
    expect(groups.mayEnter("b", "west")).toBe(false);
    groups.update(podOf("a", "west"), flow);
    expect(groups.placeOf("b")?.home).toBe("west");
  });

  test("never has pods bound in two members, in any order of events", () => {
    const pods = ["a", "b", "c", "d"];
    const step = fc.record({
      uid: fc.constantFrom(...pods),
      what: fc.constantFrom("enter", "refuse", "bind", "bind", "remove", "come"),
      member: fc.constantFrom("west", "east", "north"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const groups = new Groups(() => undefined);
        const state = new Map<string, { member?: string; bound: boolean }>();
        for (const { uid, what, member } of steps) {
          const own = state.get(uid);
          if (own === undefined) {
            if (what !== "come") continue;
            state.set(uid, { bound: false });
            groups.update(podOf(uid), flow);
          } else if (what === "remove") {
            state.delete(uid);
            groups.remove(uid);
          } else if (what === "enter" && !own.bound && groups.mayEnter(uid, member)) {
            // The controller tries one member after another, never two at once.
            own.member = member;
            groups.place(uid, member);
          } else if (what === "refuse" && !own.bound) {
            delete own.member;
            groups.place(uid, undefined);
          } else if (what === "bind" && own.member !== undefined && !own.bound) {
            own.bound = true;
            groups.update(podOf(uid, own.member), flow);
          }
          const homes = new Set([...state.values()].filter(({ bound }) => bound).map((pod) => pod.member));
          expect(homes.size).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("a gang", () => {
  const gang = {
    id: "team/podgroups.scheduling.k8s.io/gang",
    text: "the pods of PodGroup gang",
    isGang: true,
  } as const;
  const requesting = (uid: string, member?: string): Stored<Pod> => {
    const pod = podOf(uid, member);
    const containers = [{ name: "main", resources: { requests: { cpu: "2" } } }];
    return { ...pod, spec: { ...pod.spec, containers } };
  };
  let told: ObjectKey[][];
  let groups: Groups;

  beforeEach(() => {
    told = [];
    groups = new Groups((keys) => told.push([...keys]));
    for (const uid of ["a", "b", "c"]) groups.update(requesting(uid), gang);
  });

  test("follows its leader as soon as it has a member, and when it moves", () => {
    groups.place("a", "west");
    expect(told).toEqual([["team/a", "team/b", "team/c"]]);
    expect(groups.placeOf("b")?.home).toBe("west");
    groups.place("b", "west");
    expect(groups.mayEnter("a", "east")).toBe(true);
    expect(groups.mayEnter("b", "east")).toBe(false);
    groups.place("a", "east");
    expect(groups.placeOf("b")?.home).toBe("east");
    expect(groups.placeOf("a")?.home).toBeUndefined();
    expect(told).toHaveLength(2);
  });

  test("waits for its leader while that has no member", () => {
    groups.place("a", "west");
    groups.place("b", "west");
    groups.place("a", undefined);
    expect(groups.placeOf("b")).toMatchObject({ first: "team/a" });
    expect(groups.mayEnter("c", "west")).toBe(false);
    groups.place("a", "east");
    expect(groups.placeOf("c")?.home).toBe("east");
  });

  test("waits for no leader that has no member any more if no other pod is where it was", () => {
    groups.place("a", "west");
    groups.place("a", undefined);
    expect(groups.placeOf("b")?.first).toBeUndefined();
    expect(groups.mayEnter("b", "east")).toBe(true);
  });

  test("follows a pod that waits in a member when the only bound one goes", () => {
    groups.place("a", "west");
    groups.place("b", "west");
    groups.update(requesting("a", "west"), gang);
    groups.remove("a");
    expect(groups.placeOf("c")?.home).toBe("west");
    expect(groups.mayEnter("c", "east")).toBe(false);
  });

  test("follows the next of its pods that has a member when its leader is deleted", () => {
    groups.place("a", "west");
    groups.place("b", "west");
    groups.remove("a");
    expect(groups.placeOf("c")?.home).toBe("west");
    expect(groups.mayEnter("b", "east")).toBe(true);
    groups.remove("b");
    expect(groups.placeOf("c")).toMatchObject({ others: [] });
    expect(groups.mayEnter("c", "east")).toBe(true);
  });

  test("has its home where its first pod gets a node, whoever leads", () => {
    groups.place("a", "west");
    groups.place("b", "west");
    groups.place("a", "east");
    groups.update(requesting("b", "west"), gang);
    expect(groups.placeOf("a")).toEqual({ text: gang.text, home: "west", others: [] });
    expect(groups.placeOf("c")?.home).toBe("west");
  });

  test("follows the first delegate that an earlier leader's member shows", () => {
    groups.noteDelegate("b", "west");
    groups.noteDelegate("a", "east");
    expect(groups.placeOf("a")?.home).toBe("west");
    expect(groups.placeOf("c")?.home).toBe("west");
    expect(groups.placeOf("b")?.home).toBeUndefined();
  });

  test("enters no other member before all its pods have left the one where they wait", () => {
    groups.hold("a", "west");
    groups.place("a", "west");
    groups.hold("b", "west");
    groups.place("b", "west");
    groups.place("a", "east");
    told.length = 0;
    expect(groups.placeOf("c")).toMatchObject({ home: "east", heldIn: ["west"] });
    expect([groups.mayEnter("c", "east"), groups.mayEnter("a", "east")]).toEqual([false, false]);
    groups.hold("b", undefined);
    // The leader's own delegate may still get a node there.
    expect([groups.mayEnter("c", "east"), groups.mayEnter("a", "east")]).toEqual([false, true]);
    groups.hold("a", undefined);
    expect([groups.mayEnter("c", "east"), groups.mayEnter("a", "east")]).toEqual([true, true]);
    expect(told).toEqual([["team/a", "team/b", "team/c"]]);
  });

  test("follows another of its pods that has a member when its leader finds none", () => {
    groups.place("a", "west");
    groups.place("b", "west");
    expect(groups.placeOf("a")?.leads).toBeUndefined();
    groups.place("a", undefined);
    expect([groups.placeOf("a")?.leads, groups.placeOf("c")?.first]).toEqual([true, "team/a"]);
    groups.handOver("a");
    expect([groups.placeOf("a")?.home, groups.placeOf("c")?.home]).toEqual(["west", "west"]);
    // No other pod leads while the leader has a member.
    groups.handOver("b");
    expect(groups.placeOf("c")?.home).toBe("west");
  });

  test("never has delegates with a node in two members, in any order of events", () => {
    const step = fc.record({
      uid: fc.constantFrom("a", "b", "c", "d"),
      what: fc.constantFrom("create", "create", "move", "withdraw", "see", "schedule", "bind", "remove", "give up"),
      member: fc.constantFrom("west", "east"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
        const tested = new Groups(() => undefined);
        const state = new Map<string, { delegate?: { member: string; hasNode: boolean }; bound: boolean }>();
        for (const uid of ["a", "b", "c", "d"]) {
          state.set(uid, { bound: false });
          tested.update(requesting(uid), gang);
        }
        for (const { uid, what, member } of steps) {
          const own = state.get(uid);
          if (own === undefined || own.bound) continue;
          if (what === "create" && own.delegate === undefined && tested.mayEnter(uid, member)) {
            tested.hold(uid, member);
            tested.place(uid, member);
            own.delegate = { member, hasNode: false };
          }
          // A pod whose time in a member is over reserves room in another one, and is then withdrawn.
          if (what === "move") tested.place(uid, member);
          if (what === "give up") {
            tested.place(uid, undefined);
            tested.handOver(uid);
          }
          if (what === "withdraw" && own.delegate?.hasNode === false) delete own.delegate;
          if (what === "see" && own.delegate === undefined) tested.hold(uid, undefined);
          if (what === "schedule" && own.delegate !== undefined) own.delegate.hasNode = true;
          if (what === "bind" && own.delegate?.hasNode === true) {
            own.bound = true;
            tested.update(requesting(uid, own.delegate.member), gang);
          }
          if (what === "remove" && own.delegate === undefined) {
            state.delete(uid);
            tested.remove(uid);
          }
          const running = [...state.values()].flatMap(({ delegate }) =>
            delegate?.hasNode === true ? [delegate.member] : [],
          );
          expect(new Set(running).size).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("counts what its pods without a node request, and where, in any order of events", () => {
    const step = fc.record({
      uid: fc.constantFrom("a", "b", "c", "d"),
      what: fc.constantFrom("come", "place", "unplace", "bind", "remove"),
      member: fc.constantFrom("west", "east"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const tested = new Groups(() => undefined);
        const unbound = new Map<string, string | undefined>();
        for (const { uid, what, member } of steps) {
          if (what === "come" && !unbound.has(uid)) unbound.set(uid, undefined);
          if (what === "come") tested.update(requesting(uid), gang);
          if (what === "place" || what === "unplace") {
            const place = what === "place" ? member : undefined;
            tested.place(uid, place);
            if (unbound.has(uid)) unbound.set(uid, place);
          }
          if (what === "remove") {
            tested.remove(uid);
            unbound.delete(uid);
          }
          if (what === "bind") {
            // A gang whose pods are bound counts nothing: the pod goes at once.
            tested.update(requesting(uid, member), gang);
            tested.remove(uid);
            unbound.delete(uid);
          }
          for (const known of unbound.keys()) {
            const counted = tested.placeOf(known)?.gang;
            expect(counted?.requests).toEqual({ cpu: 2 * unbound.size, pods: unbound.size });
            for (const name of ["west", "east"]) {
              const there = [...unbound.values()].filter((place) => place === name).length;
              expect(counted?.in.get(name)?.cpu ?? 0).toBe(2 * there);
            }
          }
        }
      }),
    );
  });
});
