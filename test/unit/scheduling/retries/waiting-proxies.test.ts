import { describe, expect, test } from "vitest";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { Memories } from "../../../../src/scheduling/memories.ts";
import { WaitingProxies } from "../../../../src/scheduling/retries/waiting-proxies.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

function waitingProxies() {
  const clock = new FakeClock();
  const memories = new Memories({ now: () => 0 });
  const stored = new Map<ObjectKey, Stored<Pod>>();
  const looked: ObjectKey[] = [];
  const cost = { busyMs: 0 };
  const waiting = new WaitingProxies({
    clock,
    memories,
    proxies: stored,
    retries: { hurry: () => undefined },
    reconcile: (key) => looked.push(key),
    reconcileBehind: (keys, done) => {
      looked.push(...keys);
      done(cost.busyMs);
    },
  });
  const add = (name: string, spec: object = {}, creationTimestamp?: string): ObjectKey => {
    const created = proxyPod({ name, uid: name, spec: { containers: [], ...spec } });
    const proxy = creationTimestamp === undefined ? created : withCreation(created, creationTimestamp);
    const key = objectKey(proxy.metadata);
    stored.set(key, proxy);
    waiting.add(key, proxy);
    return key;
  };
  const lookedAt = (): ObjectKey[] => looked.splice(0);
  return { clock, cost, memories, stored, waiting, add, lookedAt };
}

function withCreation(proxy: Stored<Pod>, creationTimestamp: string): Stored<Pod> {
  return { ...proxy, metadata: { ...proxy.metadata, creationTimestamp } };
}

const GATED = { schedulingGates: [{ name: "example.com/quota" }] };

describe("a proxy without a node", () => {
  test("waits since it was created, or since its gates were removed", async () => {
    const { clock, waiting, add } = waitingProxies();
    const begun = clock.now();
    const [key, gated] = [add("a"), add("b", GATED)];
    await clock.advance(5_000);
    add("a");
    add("b", GATED);
    expect([waiting.since(key), waiting.since(gated)]).toEqual([begun, begun + 5_000]);
    await clock.advance(1_000);
    add("b");
    // The pod's gates were just removed; the metric counts from then on, too.
    expect(waiting.since(gated)).toBe(begun + 5_000);
    expect(waiting.summary()).toEqual({ count: 2, oldestSeconds: 6 });
    waiting.remove(key);
    expect(waiting.since(key)).toBeUndefined();
  });

  test("does not count in the metrics while it has scheduling gates", async () => {
    const { clock, waiting, add } = waitingProxies();
    add("a", GATED);
    await clock.advance(60_000);
    expect(waiting.summary()).toEqual({ count: 0, oldestSeconds: 0 });
  });

  test("is looked at again at once when members change, and once in a while when delegates end", async () => {
    const { clock, waiting, add, lookedAt } = waitingProxies();
    const key = add("a");
    waiting.onMembers();
    expect(lookedAt()).toEqual([key]);
    waiting.onRoom();
    waiting.onRoom();
    await clock.advance(249);
    expect(lookedAt()).toEqual([]);
    await clock.advance(1);
    expect(lookedAt()).toEqual([key]);
    waiting.remove(key);
    waiting.onRoom();
    expect(clock.pending).toBe(0);
  });

  test("is looked at together with the others when there are many", async () => {
    const { clock, waiting, add, lookedAt } = waitingProxies();
    for (let number = 0; number < 101; number++) add(`pod-${number}`);
    for (let change = 0; change < 10; change++) waiting.onMembers();
    expect(lookedAt()).toEqual([]);
    await clock.advance(250);
    expect(lookedAt()).toHaveLength(101);
  });

  test("is decided before pods of lower priority, and before younger ones", async () => {
    const { clock, waiting, add, lookedAt } = waitingProxies();
    const young = add("young", { priority: 1000 }, "2026-01-02T00:00:00Z");
    const least = add("least", { priority: -10 }, "2026-01-01T00:00:00Z");
    const plain = add("plain", {}, "2026-01-03T00:00:00Z");
    const old = add("old", { priority: 1000 }, "2026-01-01T00:00:00Z");
    waiting.onRoom();
    await clock.advance(250);
    expect(lookedAt()).toEqual([old, young, plain, least]);
  });

  test.each<[string, (waiting: WaitingProxies) => void, number]>([
    ["delegates end", (waiting) => waiting.onRoom(), 250],
    ["members change", (waiting) => waiting.onMembers(), 0],
    ["others get their places", (waiting) => waiting.onPlaces(), 1_000],
  ])("is looked at less often the longer that takes, though %s all the time", async (_, change, first) => {
    const { clock, cost, waiting, memories, add, lookedAt } = waitingProxies();
    const key = add("a");
    memories.noteReported("a", { reason: "NotPlaced", message: "no member fits" }, clock.now());
    cost.busyMs = 400;
    const looks: number[] = [];
    for (let elapsed = 0; elapsed <= 9_000; elapsed += 50) {
      change(waiting);
      if (lookedAt().includes(key)) looks.push(elapsed);
      await clock.advance(50);
    }
    expect(looks).toHaveLength(3);
    expect(looks[0]).toBeLessThanOrEqual(first + 50);
    for (const [nth, at] of looks.entries()) expect(at - (looks[nth - 1] ?? -4_000)).toBeGreaterThanOrEqual(4_000);
  });

  test("is looked at when another one gets its place, if it was told why it waits", async () => {
    const { clock, waiting, memories, add, lookedAt } = waitingProxies();
    add("a");
    const told = add("b");
    memories.noteReported("b", { reason: "NotPlaced", message: "no member fits" }, clock.now());
    waiting.onPlaces();
    await clock.advance(1_000);
    expect(lookedAt()).toEqual([told]);
  });

  test("may have a delegate in a member that has to be read again", async () => {
    const { waiting, memories, add, stored } = waitingProxies();
    add("a");
    add("gated", GATED);
    stored.delete(add("gone"));
    waiting.onReconnected("west");
    // The gated pod was not created anywhere yet.
    expect(memories.of("gated").unproven).toBeUndefined();
    expect([...(memories.of("a").unproven ?? [])]).toEqual(["west"]);
    expect(memories.of("gone").unproven).toBeUndefined();
  });

  test("is not looked at any more when the controller stops", async () => {
    const { clock, waiting, add } = waitingProxies();
    add("a");
    waiting.onRoom();
    waiting.onPlaces();
    waiting.stop();
    expect(clock.pending).toBe(0);
  });
});
