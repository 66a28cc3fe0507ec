import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { DelegateRequests } from "../../../../src/clusters/delegate-requests.ts";
import type { Refusal } from "../../../../src/placement/candidate.ts";
import { Memories } from "../../../../src/scheduling/memories.ts";
import { Retries } from "../../../../src/scheduling/retries/retries.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { proxyPod } from "../../../support/builders/pod.ts";

const refusal: Refusal = { cluster: "west", reason: "Unschedulable", message: "no node fits" };
const nodesVersion = 1;

/** Returns retries over the member west, and what may be changed: time, and the version of the member's room. */
function retrying(): { readonly retries: Retries; readonly memories: Memories; at: number; roomVersion: string } {
  const world = { at: 1_000_000, roomVersion: "1" };
  const clock = { now: () => world.at };
  const memories = new Memories(clock);
  const west = {
    ...{ name: "west", read: true, syncing: false, requests: new DelegateRequests() },
    candidate: () => candidateNamed("west"),
    get roomVersion() {
      return world.roomVersion;
    },
  };
  const registry = { member: (name: string) => (name === "west" ? west : undefined) };
  return Object.assign(world, { memories, retries: new Retries({ registry, memories, clock }) });
}

function alike(uid: string): Stored<Pod> {
  return proxyPod({ uid, name: uid, metadata: { name: uid } });
}

describe("a refusal that holds for a shape", () => {
  const refusedBefore = ({ retries }: ReturnType<typeof retrying>, uid: string): string | undefined =>
    retries.ofOthers(alike(uid))?.("west")?.refusal.message;

  test("keeps other pods of the shape from the member, until its room changes", () => {
    const world = retrying();
    expect(world.retries.ofOthers(alike("b"))).toBeUndefined();
    expect(world.retries.refuse("a", refusal, { nodesVersion, pod: alike("a"), sharedBy: "spec" })).toBe(false);
    expect(refusedBefore(world, "b")).toBe(refusal.message);
    world.roomVersion = "2";
    expect(refusedBefore(world, "b")).toBeUndefined();
  });

  test("is tried by one pod for all, whose end lets the next one try", () => {
    const world = retrying();
    world.retries.refuse("a", refusal, { nodesVersion, pod: alike("a"), sharedBy: "spec" });
    world.roomVersion = "2";
    world.retries.attempt("b", "west", alike("b"));
    expect([refusedBefore(world, "b"), refusedBefore(world, "c")]).toEqual([undefined, refusal.message]);
    expect(world.retries.abandon("b")).toBe(true);
    expect(refusedBefore(world, "c")).toBeUndefined();
  });

  test("is not tried by a pod that is parked: it asks for no node now", () => {
    const world = retrying();
    world.retries.refuse("a", refusal, { nodesVersion, pod: alike("a"), sharedBy: "spec" });
    world.roomVersion = "2";
    world.retries.attempt("b", "west", alike("b"), true);
    expect(world.memories.of("b").attempts.west).toMatchObject({ parked: true });
    expect(refusedBefore(world, "c")).toBeUndefined();
  });

  test("ends once the member takes such a pod", () => {
    const world = retrying();
    world.retries.refuse("a", refusal, { nodesVersion, pod: alike("a"), sharedBy: "spec" });
    expect(world.retries.accept("west", alike("b"), "RefusedByMember")).toBe(false);
    expect(world.retries.accept("west", alike("b"))).toBe(true);
    expect(world.retries.ofOthers(alike("c"))).toBeUndefined();
  });

  test("is not noted of a member that has left", () => {
    const world = retrying();
    world.retries.refuseAll(alike("a"), { ...refusal, cluster: "gone" }, "spec");
    expect(world.retries.ofOthers(alike("b"))).toBeUndefined();
  });
});

describe("a refusal of one pod", () => {
  test("holds for that pod alone, for its backoff", () => {
    const { retries, memories, at } = retrying();
    retries.attempt("a", "west", alike("a"));
    expect(retries.refuse("a", refusal, { nodesVersion, pod: alike("a") })).toBe(false);
    expect(memories.of("a").attempts.west).toMatchObject({ refusal, until: at + 30_000, nodesVersion });
    expect(retries.ofOthers(alike("b"))).toBeUndefined();
  });

  test("is over at once when the pod is to hurry, and does not prolong the next backoff", () => {
    const world = retrying();
    world.retries.refuse("a", refusal, { nodesVersion });
    world.at += 1000;
    world.retries.hurry("a", "west");
    expect(world.memories.of("a").attempts.west).toMatchObject({ until: world.at, refusalCount: 0, hurried: true });
  });

  test("that ends its trial lets others of its shape ask", () => {
    const world = retrying();
    world.retries.refuse("a", refusal, { nodesVersion, pod: alike("a"), sharedBy: "spec" });
    world.retries.attempt("b", "west", alike("b"));
    expect(world.retries.refuse("b", { ...refusal, reason: "NameTaken" }, { nodesVersion })).toBe(true);
  });
});
