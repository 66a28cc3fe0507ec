import { describe, expect, test } from "vitest";
import type { ObjectKey, Pod, Stored } from "../../../../../src/api/kubernetes.ts";
import { objectKey } from "../../../../../src/api/kubernetes.ts";
import type { Memory } from "../../../../../src/controllers/delegation/model/memory.ts";
import { QuotaQueues } from "../../../../../src/controllers/delegation/placement/quota-queues.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { FakeClock } from "../../../../support/clock/fake-clock.ts";

const west = { member: "west", namespace: "team" };
const refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" } as const;
const under: Memory = { fresh: true, attempts: { west: { since: 0, refusals: 1 } } };
const refused: Memory = { fresh: true, attempts: { west: { since: 0, refusals: 1, refusal } } };

/** Queues over these pods, the oldest first, and who was told to ask. */
function queues(names: readonly string[], priorities: Readonly<Record<string, number>> = {}) {
  const clock = new FakeClock();
  const pods = new Map<ObjectKey, Stored<Pod>>();
  const memories = new Map<string, Memory>();
  const asked: string[] = [];
  names.forEach((name, order) => {
    const metadata = { creationTimestamp: `2024-01-01T00:00:${String(order).padStart(2, "0")}Z` };
    const pod = proxyPod({ name, uid: name, metadata, spec: { priority: priorities[name] ?? 0 } });
    pods.set(objectKey(pod.metadata), pod);
  });
  const made = new QuotaQueues({
    clock,
    proxyOf: (key) => pods.get(key),
    memoryOf: (uid) => memories.get(uid) ?? under,
    reopen: (_key, uid) => asked.push(uid),
  });
  const keyOf = (name: string): ObjectKey => objectKey({ namespace: "team", name });
  for (const name of names) made.refused(west, name, keyOf(name));
  return { clock, pods, memories, asked, keyOf, queues: made };
}

describe("when a pod ends in a namespace whose quota is full", () => {
  test("the one that a scheduler would take first asks, and the next when that one has been taken", async () => {
    const { clock, asked, queues: made } = queues(["a", "b", "c"], { c: 5 });
    await clock.advance(60_000);
    expect(asked).toEqual([]);
    made.onEnded(west);
    await clock.advance(249);
    expect(asked).toEqual([]);
    await clock.advance(1);
    expect(asked).toEqual(["c"]);
    await clock.advance(30_000);
    expect(asked).toEqual(["c"]);
    made.accepted(west, "c");
    await clock.advance(0);
    expect(asked).toEqual(["c", "a"]);
  });

  test("none asks after one that was refused, but for what may not have been counted yet", async () => {
    const { clock, asked, keyOf, queues: made } = queues(["a"]);
    made.onEnded(west);
    const perSecond: number[] = [];
    for (let second = 1; second <= 12; second += 1) {
      const before = asked.length;
      for (let step = 0; step < 4; step += 1) {
        const known = asked.length;
        await clock.advance(250);
        if (asked.length > known) made.refused(west, "a", keyOf("a"));
      }
      perSecond.push(asked.length - before);
    }
    expect(perSecond).toEqual([1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
  });

  test("one that asks for more than there is holds up nobody, and is the first again some seconds later", async () => {
    const { clock, asked, keyOf, queues: made } = queues(["large", "b", "c"], { large: 5 });
    made.onEnded(west);
    await clock.advance(250);
    made.refused(west, "large", keyOf("large"));
    await clock.advance(2_000);
    made.accepted(west, "b");
    await clock.advance(0);
    expect(asked).toEqual(["large", "b", "c"]);
    made.refused(west, "c", keyOf("c"));
    await clock.advance(10_000);
    made.onEnded(west);
    await clock.advance(250);
    expect(asked.at(-1)).toBe("large");
  });

  test("one that went while it asked is not waited for", async () => {
    const { clock, pods, keyOf, queues: made } = queues(["a"]);
    made.onEnded(west);
    await clock.advance(250);
    pods.delete(keyOf("a"));
    made.leave("a");
    made.refused(west, "a", keyOf("a"));
    expect([made.size, clock.pending]).toEqual([0, 0]);
  });

  test("the next that ends is news at once", async () => {
    const { clock, asked, keyOf, queues: made } = queues(["a"]);
    made.onEnded(west);
    await clock.advance(250);
    made.refused(west, "a", keyOf("a"));
    made.onEnded(west);
    await clock.advance(250);
    expect(asked).toEqual(["a", "a"]);
  });

  test("an end during a long attempt triggers another attempt after the refusal", async () => {
    const { clock, asked, keyOf, queues: made } = queues(["a"]);
    made.onEnded(west);
    await clock.advance(250);
    made.onEnded(west);
    await clock.advance(20_000);
    made.refused(west, "a", keyOf("a"));
    await clock.advance(2_000);
    expect(asked).toEqual(["a", "a"]);
  });

  test("one that is kept from asking by something else is passed over, and holds up the others for a second", async () => {
    const { clock, asked, memories, queues: made } = queues(["a", "b"]);
    memories.set("a", refused);
    made.onEnded(west);
    await clock.advance(1_249);
    expect(asked).toEqual(["a"]);
    await clock.advance(1);
    expect(asked).toEqual(["a", "b"]);
  });

  test("one that has to leave another member first has a minute", async () => {
    const { clock, asked, memories, queues: made } = queues(["a", "b"]);
    memories.set("a", { ...refused, promised: "west" });
    made.onEnded(west);
    await clock.advance(60_000);
    expect(asked).toEqual(["a"]);
    await clock.advance(1_000);
    expect(asked).toEqual(["a", "b"]);
  });

  test("one that goes, or ends, while it asks gives up its turn", async () => {
    const { clock, asked, pods, keyOf, queues: made } = queues(["a", "b", "c"]);
    const b = pods.get(keyOf("b"));
    if (b !== undefined) pods.set(keyOf("b"), { ...b, status: { phase: "Failed" } });
    made.onEnded(west);
    await clock.advance(250);
    made.leave("a");
    await clock.advance(0);
    expect(asked).toEqual(["a", "c"]);
  });

  test("none asks of the same name, when the one that was refused has been replaced", async () => {
    const { clock, asked, pods, keyOf, queues: made } = queues(["a"]);
    pods.set(keyOf("a"), proxyPod({ name: "a", uid: "another" }));
    made.onEnded(west);
    await clock.advance(60_000);
    expect(asked).toEqual([]);
  });

  test("nobody hears of it in another namespace or member", async () => {
    const { clock, asked, queues: made } = queues(["a"]);
    made.onEnded({ ...west, namespace: "other" });
    made.onEnded({ ...west, member: "east" });
    await clock.advance(60_000);
    expect(asked).toEqual([]);
  });
});

test("a pod that a quota has room for, though nothing has ended there, lets the next ask: it was raised", async () => {
  const { clock, asked, queues: made } = queues(["a"]);
  made.accepted(west, "new");
  await clock.advance(0);
  expect(asked).toEqual(["a"]);
});

test("nothing is kept of a namespace in which none waits any more, nor after the end", async () => {
  const { clock, asked, keyOf, queues: made } = queues(["a", "b"]);
  made.onEnded(west);
  made.leave("a");
  expect(made.size).toBe(1);
  made.accepted(west, "b");
  expect([made.size, clock.pending]).toEqual([0, 0]);
  made.refused(west, "a", keyOf("a"));
  made.onEnded(west);
  made.stop();
  await clock.advance(60_000);
  expect([asked, made.size, clock.pending]).toEqual([[], 0, 0]);
});

// Most of what is refused would be refused again: two hundred that each asked at each end were a storm.
test.each([
  ["that counts at once", 0],
  ["that counts late", 800],
])("a quota %s is kept full, with about one request for each pod that ends", async (_, countsAfterMs) => {
  const waiting = Array.from({ length: 200 }, (_, order) => `pod-${order}`);
  const room = 10;
  const { clock, asked, keyOf, queues: made } = queues(waiting);
  let counted = room;
  let running = room;
  let ended = 0;
  let taken = 0;
  let idleMs = 0;
  for (let ms = 0; ms < 120_000; ms += 50) {
    if (ms % 1_000 === 0 && running > 0) {
      running -= 1;
      ended += 1;
      clock.after(countsAfterMs, () => {
        counted -= 1;
      });
      made.onEnded(west);
    }
    const known = asked.length;
    await clock.advance(50);
    for (const uid of asked.slice(known)) {
      if (counted < room) {
        counted += 1;
        running += 1;
        taken += 1;
        made.accepted(west, uid);
      } else {
        made.refused(west, uid, keyOf(uid));
      }
    }
    idleMs += (room - running) * 50;
  }
  expect(ended).toBe(120);
  expect(taken).toBeGreaterThanOrEqual(ended - 2);
  expect(asked.length).toBeLessThanOrEqual(2.5 * ended);
  // Of ten places, not two are empty at a time.
  expect(idleMs / 120_000).toBeLessThan(2);
});
