import { describe, expect, test } from "vitest";
import { DelegateRequests } from "../../../src/clusters/delegate-requests.ts";
import type { Refusal } from "../../../src/placement/candidate.ts";
import { Memories } from "../../../src/scheduling/memories.ts";
import { RequestMutations } from "../../../src/scheduling/request-mutations.ts";
import { Reservations } from "../../../src/scheduling/reservations.ts";
import { Retries } from "../../../src/scheduling/retries/retries.ts";
import { candidateNamed } from "../../support/builders/candidate.ts";
import { proxyPod } from "../../support/builders/pod.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const first = proxyPod({ name: "web-0", uid: "first" });
const second = proxyPod({ name: "web-1", uid: "second" });
const requests = { cpu: 2, pods: 1 };
const asked = { requests, namespace: "team" };
const none = { cpu: 0, pods: 0 };
const refusal: Refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" };

const shared = (pod: typeof first | undefined) => ({ nodesVersion: 1, pod, sharedBy: "spec" }) as const;

function reservations() {
  const clock = new FakeClock();
  const memories = new Memories({ now: () => 0 });
  const loads = { west: new DelegateRequests(), east: new DelegateRequests() };
  const member = (name: string) =>
    name === "west" || name === "east"
      ? {
          name,
          read: true,
          syncing: false,
          roomVersion: "1",
          requests: loads[name],
          candidate: () => candidateNamed(name),
        }
      : undefined;
  const mutations = new RequestMutations();
  const retries = new Retries({ registry: { member }, memories, clock });
  const made = new Reservations({ registry: { member }, memories, retries, mutations, clock });
  const mayTry = (pod: typeof first, name = "west"): boolean => retries.ofOthers(pod)?.(name) === undefined;
  return { ...loads, clock, memories, reservations: made, retries, mayTry };
}

describe("the reserved room of a pod", () => {
  test("is in one member at a time", async () => {
    const { reservations: made, west, east, memories } = reservations();
    made.attempt("first", "west", asked, first);
    expect(west.used).toEqual(requests);
    made.reserve("first", "east", asked);
    expect([west.used, east.used]).toEqual([none, requests]);
    expect(memories.of("first")).toMatchObject({ reserved: "east", lastReserved: "east" });
    made.attempt("first", "east", asked, first);
    expect([west.used, east.used]).toEqual([none, requests]);
    expect(memories.of("first").reserved).toBeUndefined();
  });

  test("is reported free when it was reserved elsewhere in vain", () => {
    const { reservations: made } = reservations();
    expect([
      made.reserve("first", "west", asked),
      made.reserve("first", "west", asked),
      made.reserve("first", "east", asked),
      made.attempt("first", "east", asked, first),
      made.attempt("first", "west", asked, first),
    ]).toEqual([false, false, true, false, true]);
    // The watch has shown the delegate, which now counts itself.
    made.release("first", "west");
    expect(made.reserve("first", "east", asked)).toBe(false);
  });

  test("stays where the member takes the pod, and is released elsewhere", async () => {
    const { reservations: made, west, east, memories } = reservations();
    made.attempt("first", "west", asked, first);
    made.reserve("first", "east", asked);
    west.reserve("first", requests);
    expect(made.noteBound("first", "west", first)).toBe(true);
    expect([west.used, east.used]).toEqual([requests, none]);
    expect(memories.of("first").attempts).toEqual({});
  });

  test("is released when the pod is gone, or was not created", async () => {
    const { reservations: made, west, east, memories } = reservations();
    made.reserve("first", "west", asked);
    made.attempt("second", "east", asked, second);
    memories.noteUncertain("second", "east");
    expect([made.end("first"), made.end("first")]).toEqual([true, false]);
    made.unmade("second", "east");
    expect([west.used, east.used]).toEqual([none, none]);
    expect(memories.of("second").uncertain).toBeUndefined();
  });
});

describe("a refusal of a member", () => {
  test("holds no longer for other pods than for the pod itself, and lets it try soon once", async () => {
    const { reservations: made, retries, mayTry, memories, clock } = reservations();
    for (const [untilMs, others] of [
      [2_000, true],
      [30_000, false],
    ] as const) {
      made.attempt("first", "west", asked, first);
      retries.refuse("first", refusal, { ...shared(first), growth: "brief" });
      expect(memories.of("first").attempts.west?.until).toBe(clock.now() + untilMs);
      expect(mayTry(second)).toBe(false);
      await clock.advance(2_000);
      expect(mayTry(second)).toBe(others);
    }
  });

  test("holds for other pods of the shape, until one of them tries for all and is taken", async () => {
    const { reservations: made, retries, mayTry, clock } = reservations();
    made.attempt("first", "west", asked, first);
    retries.refuse("first", refusal, shared(first));
    expect([mayTry(second), mayTry(second, "east")]).toEqual([false, true]);
    await clock.advance(30_000);
    expect(mayTry(second)).toBe(true);
    made.attempt("second", "west", asked, second);
    expect([mayTry(first), mayTry(second)]).toEqual([false, true]);
    expect(made.noteBound("second", "west", second)).toBe(true);
    expect(mayTry(first)).toBe(true);
  });

  test("is not tried for all by a pod that is to wait there", async () => {
    const { reservations: made, retries, mayTry, clock } = reservations();
    retries.refuse("first", refusal, shared(first));
    await clock.advance(30_000);
    made.attempt("second", "west", { ...asked, parked: true }, second);
    expect(mayTry(first)).toBe(true);
  });

  test.each<[string, string | undefined, boolean]>([
    ["for a pod with other labels", "blue", true],
    ["for a pod with the same labels", undefined, false],
  ])("holds only for equal labels if labels decide: %s", (_, team, free) => {
    const { retries, mayTry } = reservations();
    retries.refuse("first", refusal, { ...shared(first), sharedBy: "labels" });
    const other = team === undefined ? second : proxyPod({ uid: "other", metadata: { labels: { team } } });
    expect(mayTry(other)).toBe(free);
  });

  test("holds for no other pod if it concerns the pod alone, and wakes one that waited for the answer", async () => {
    const { reservations: made, retries, memories, mayTry, clock } = reservations();
    const own = { nodesVersion: 1, pod: first };
    expect(retries.refuse("first", refusal, own)).toBe(false);
    expect(mayTry(second)).toBe(true);
    retries.refuse("second", refusal, shared(second));
    await clock.advance(30_000);
    made.attempt("first", "west", asked, first);
    expect([retries.refuse("first", refusal, own), mayTry(second)]).toEqual([true, true]);
    // The pod's own backoff grows.
    expect(memories.of("first").attempts.west?.until).toBe(clock.now() + 60_000);
  });

  test("is the pod's own if the pod is not known any more", async () => {
    const { retries, mayTry, memories } = reservations();
    retries.refuse("first", refusal, shared(undefined));
    expect(memories.of("first").attempts.west?.refusal).toEqual(refusal);
    expect(mayTry(second)).toBe(true);
  });
});

describe("pods that wait for the one that tries for all of their shape", () => {
  async function trying() {
    const all = reservations();
    const { reservations: made, retries, clock } = all;
    retries.refuse("first", refusal, shared(first));
    await clock.advance(30_000);
    made.attempt("first", "west", asked, first);
    expect(all.mayTry(second)).toBe(false);
    return all;
  }

  const taken: Refusal = { cluster: "west", reason: "NameTaken", message: "a pod of that name is there" };
  test.each<[string, (all: ReturnType<typeof reservations>, uid: string) => void]>([
    ["it is gone", ({ reservations: made }, uid) => void made.end(uid)],
    ["it was not made", ({ reservations: made }, uid) => made.unmade(uid, "west")],
    [
      "its own name is in its way",
      ({ retries }, uid) => void retries.refuse(uid, taken, { nodesVersion: 1, pod: first }),
    ],
  ])("may try when %s", async (_, over) => {
    const all = await trying();
    over(all, "second");
    expect(all.mayTry(second)).toBe(false);
    over(all, "first");
    expect(all.mayTry(second)).toBe(true);
  });

  test("are told that it is gone, and of no other", async () => {
    const { reservations: made } = await trying();
    expect(["second", "first", "first"].map((uid) => made.end(uid))).toEqual([false, true, false]);
  });

  test("wait for no other end once it is tried elsewhere", async () => {
    const { reservations: made, retries, mayTry } = await trying();
    retries.refuse("second", { ...refusal, cluster: "east" }, shared(second));
    made.attempt("first", "east", asked, first);
    expect([mayTry(second), mayTry(second, "east")]).toEqual([true, false]);
  });
});

describe("a search that ends", () => {
  const bound = proxyPod({ name: "web-0", uid: "first", spec: { nodeName: "legation-west" } });

  test.each([
    ["keeps the Binding until the host shows it", first, { member: "west", delegateUid: "d" }],
    ["keeps nothing when the host shows the Binding", bound, undefined],
    ["keeps nothing when the proxy is gone", undefined, undefined],
    ["keeps nothing when another proxy has the name", second, undefined],
  ])("%s", (_, shown, binding) => {
    const { reservations: made, memories } = reservations();
    made.attempt("first", "west", asked, first);
    memories.noteSent("first", { binding: { member: "west", delegateUid: "d" } });
    made.noteBound("first", "west", shown);
    expect(memories.of("first")).toEqual({ fresh: true, attempts: {}, ...(binding === undefined ? {} : { binding }) });
  });
});
