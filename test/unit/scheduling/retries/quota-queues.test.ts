import { describe, expect, test } from "vitest";
import type { ObjectKey, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import type { Memory } from "../../../../src/scheduling/memory.ts";
import { QuotaQueues } from "../../../../src/scheduling/retries/quota-queues.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const west = { member: "west", namespace: "team" };
const refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" } as const;
const under: Memory = { fresh: true, attempts: { west: { since: 0, refusalCount: 1 } } };
const refused: Memory = { fresh: true, attempts: { west: { since: 0, refusalCount: 1, refusal } } };

/** Returns queues over these pods, the oldest first, and records which ones are to ask. */
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
    proxies: pods,
    memories: { of: (uid) => memories.get(uid) ?? under },
    retries: { hurry: (uid) => void asked.push(uid) },
    reconcile: () => undefined,
  });
  const keyOf = (name: string): ObjectKey => objectKey({ namespace: "team", name });
  for (const name of names) made.refused(west, name, keyOf(name));
  return { clock, pods, memories, asked, keyOf, queues: made };
}

describe("the end of a pod in a namespace whose quota is full", () => {
  test("lets the first in scheduling order ask, and the next once that one was taken", async () => {
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

  test("lets no pod ask after a refused one, except for an end that may not be counted yet", async () => {
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

  test("lets a too large pod hold up no other, and puts it first again some seconds later", async () => {
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

  test("does not wait for a pod that went while it asked", async () => {
    const { clock, pods, keyOf, queues: made } = queues(["a"]);
    made.onEnded(west);
    await clock.advance(250);
    pods.delete(keyOf("a"));
    made.leave("a");
    made.refused(west, "a", keyOf("a"));
    expect([made.size, clock.pending]).toEqual([0, 0]);
  });

  test("counts at once after the next end", async () => {
    const { clock, asked, keyOf, queues: made } = queues(["a"]);
    made.onEnded(west);
    await clock.advance(250);
    made.refused(west, "a", keyOf("a"));
    made.onEnded(west);
    await clock.advance(250);
    expect(asked).toEqual(["a", "a"]);
  });

  test("causes another attempt after the refusal if it came during a long attempt", async () => {
    const { clock, asked, keyOf, queues: made } = queues(["a"]);
    made.onEnded(west);
    await clock.advance(250);
    made.onEnded(west);
    await clock.advance(20_000);
    made.refused(west, "a", keyOf("a"));
    await clock.advance(2_000);
    expect(asked).toEqual(["a", "a"]);
  });

  test("passes over a pod that something else keeps from asking, and holds up the others for a second", async () => {
    const { clock, asked, memories, queues: made } = queues(["a", "b"]);
    memories.set("a", refused);
    made.onEnded(west);
    await clock.advance(1_249);
    expect(asked).toEqual(["a"]);
    await clock.advance(1);
    expect(asked).toEqual(["a", "b"]);
  });

  test("gives a pod that has to leave another member first a minute", async () => {
    const { clock, asked, memories, queues: made } = queues(["a", "b"]);
    memories.set("a", { ...refused, reserved: "west" });
    made.onEnded(west);
    await clock.advance(60_000);
    expect(asked).toEqual(["a"]);
    await clock.advance(1_000);
    expect(asked).toEqual(["a", "b"]);
  });

  test("ends the turn of a pod that goes, or ends, while it asks", async () => {
    const { clock, asked, pods, keyOf, queues: made } = queues(["a", "b", "c"]);
    const b = pods.get(keyOf("b"));
    if (b !== undefined) pods.set(keyOf("b"), { ...b, status: { phase: "Failed" } });
    made.onEnded(west);
    await clock.advance(250);
    made.leave("a");
    await clock.advance(0);
    expect(asked).toEqual(["a", "c"]);
  });

  test("lets no pod ask under the name of one that was replaced", async () => {
    const { clock, asked, pods, keyOf, queues: made } = queues(["a"]);
    pods.set(keyOf("a"), proxyPod({ name: "a", uid: "another" }));
    made.onEnded(west);
    await clock.advance(60_000);
    expect(asked).toEqual([]);
  });

  test("concerns no other namespace or member", async () => {
    const { clock, asked, queues: made } = queues(["a"]);
    made.onEnded({ ...west, namespace: "other" });
    made.onEnded({ ...west, member: "east" });
    await clock.advance(60_000);
    expect(asked).toEqual([]);
  });
});

test("lets the next pod ask when one was taken without an end: the quota was raised", async () => {
  const { clock, asked, queues: made } = queues(["a"]);
  made.accepted(west, "new");
  await clock.advance(0);
  expect(asked).toEqual(["a"]);
});

test("keeps nothing of a namespace without waiting pods, nor after the end", async () => {
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

// Most refused pods would be refused again: two hundred attempts at each end would be too many.
test.each([
  ["that counts at once", 0],
  ["that counts late", 800],
])("keeps a quota %s full, with about one request for each pod that ends", async (_, countsAfterMs) => {
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
  // On average fewer than two of ten places are empty.
  expect(idleMs / 120_000).toBeLessThan(2);
});
