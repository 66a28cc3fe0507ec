import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Slots, TokenBucket, type Waiter } from "../../../src/kube/limits.ts";

describe("TokenBucket", () => {
  test("passes a burst at once, and spaces out further requests", () => {
    const bucket = new TokenBucket(10, 3, 0);
    expect([1, 2, 3, 4, 5].map(() => bucket.reserve(0, 10_000))).toEqual([0, 0, 0, 100, 200]);
  });

  test("refills with time, up to the burst", () => {
    const bucket = new TokenBucket(10, 2, 0);
    bucket.reserve(0, 0);
    bucket.reserve(0, 0);
    expect(bucket.reserve(100, 0)).toBe(0);
    expect([1, 2, 3].map(() => bucket.reserve(60_000, 10_000))).toEqual([0, 0, 100]);
  });

  test("takes no token when the wait would be too long", () => {
    const bucket = new TokenBucket(10, 1, 0);
    bucket.reserve(0, 0);
    expect(bucket.reserve(0, 99)).toBeUndefined();
    expect(bucket.reserve(0, 100)).toBe(100);
  });
});

describe("Slots", () => {
  const nothing = { namespace: "team", granted: () => {} };

  /** Waiters that note when they are granted their slots. */
  function noting(): { readonly granted: string[]; readonly waiter: (name: string, namespace?: string) => Waiter } {
    const granted: string[] = [];
    return { granted, waiter: (name, namespace = "team") => ({ namespace, granted: () => granted.push(name) }) };
  }

  test("go to the longest waiter that has not left", () => {
    const slots = new Slots(1);
    const { granted, waiter } = noting();
    const [a, b, c] = [waiter("a"), waiter("b"), waiter("c")];
    expect(slots.take(nothing)).toBe(true);
    expect([a, b, c].map((one) => slots.take(one))).toEqual([false, false, false]);
    expect(slots.leave(b)).toBe(true);
    slots.release(nothing);
    slots.release(a);
    expect(granted).toEqual(["a", "c"]);
    expect(slots.leave(a)).toBe(false);
    slots.release(c);
    expect(slots.take(b)).toBe(true);
  });

  test("take turns between namespaces, however many requests of one wait", () => {
    const slots = new Slots(1);
    const { granted, waiter } = noting();
    slots.take(nothing);
    for (const name of ["a1", "a2", "a3", "b1", "b2", "c1"]) slots.take(waiter(name, name.slice(0, 1)));
    slots.release(nothing);
    while (granted.length < 6) slots.release({ namespace: granted.at(-1)?.slice(0, 1) ?? "" });
    expect(granted).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
    expect(slots.waiting).toBe(0);
  });

  test.each([
    { hanging: 1, each: [48] },
    { hanging: 2, each: [28, 27] },
    { hanging: 4, each: [15, 15, 15, 14] },
  ])("are left for others by $hanging whose requests all hang", ({ hanging, each }) => {
    const slots = new Slots(64);
    const { granted, waiter } = noting();
    const names = Array.from({ length: hanging }, (_, nth) => `hangs-${nth}`);
    const under = new Map(names.map((name) => [name, 0]));
    for (const name of names) {
      for (let nth = 0; nth < 200; nth += 1) if (slots.take(waiter(name, name))) under.set(name, nth + 1);
    }
    // Each gives up, one after the other, and asks again.
    for (let round = 0; round < 100; round += 1) {
      for (const name of names) {
        slots.release({ namespace: name });
        under.set(name, (under.get(name) ?? 0) - 1);
        for (const other of granted.splice(0)) under.set(other, (under.get(other) ?? 0) + 1);
      }
    }
    expect([...under.values()]).toEqual(each);
    expect(slots.take(waiter("other", "other"))).toBe(true);
    expect(slots.take(waiter("other", "other"))).toBe(true);
  });

  test("go to a namespace that holds none, even the last one", () => {
    const slots = new Slots(2);
    const { granted, waiter } = noting();
    expect(["a", "a", "b", "c"].map((name) => slots.take(waiter(name, name)))).toEqual([true, false, true, false]);
    slots.release({ namespace: "b" });
    expect(granted).toEqual(["c"]);
  });

  test("never exceed their number, and no waiter is left out", () => {
    const step = fc.record({
      namespace: fc.constantFrom("a", "b", "c"),
      does: fc.constantFrom("take", "release", "leave"),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.array(step, { maxLength: 200 }), (size, steps) => {
        const slots = new Slots(size);
        const [held, waits] = [new Set<Waiter>(), new Set<Waiter>()];
        const of = (all: Set<Waiter>, namespace: string): Waiter[] =>
          [...all].filter((one) => one.namespace === namespace);
        for (const { namespace, does } of steps) {
          const waiter: Waiter = { namespace, granted: () => void (waits.delete(waiter) && held.add(waiter)) };
          const [holder] = of(held, namespace);
          const [waiting] = of(waits, namespace);
          if (does === "take") (slots.take(waiter) ? held : waits).add(waiter);
          else if (does === "leave" && waiting !== undefined) waits.delete(waiting) && slots.leave(waiting);
          else if (holder !== undefined) held.delete(holder) && slots.release(holder);
          expect(held.size).toBeLessThanOrEqual(size);
          expect(slots.waiting).toBe(waits.size);
          const free = size - held.size;
          for (const one of free === 0 ? [] : waits) {
            expect(of(held, one.namespace).length).toBeGreaterThanOrEqual(Math.max(1, 3 * (free - 1)));
          }
        }
      }),
    );
  });
});
