import { describe, expect, test } from "vitest";
import { Slots, TokenBucket } from "../../../src/kube/limits.ts";

describe("TokenBucket", () => {
  test("lets a burst go at once and spaces out what follows", () => {
    const bucket = new TokenBucket(10, 3, 0);
    expect([1, 2, 3, 4, 5].map(() => bucket.reserve(0, 10_000))).toEqual([0, 0, 0, 100, 200]);
  });

  test("fills again with time, up to the burst", () => {
    const bucket = new TokenBucket(10, 2, 0);
    bucket.reserve(0, 0);
    bucket.reserve(0, 0);
    expect(bucket.reserve(100, 0)).toBe(0);
    expect([1, 2, 3].map(() => bucket.reserve(60_000, 10_000))).toEqual([0, 0, 100]);
  });

  test("takes nothing when the wait would be too long", () => {
    const bucket = new TokenBucket(10, 1, 0);
    bucket.reserve(0, 0);
    expect(bucket.reserve(0, 99)).toBeUndefined();
    expect(bucket.reserve(0, 100)).toBe(100);
  });
});

describe("Slots", () => {
  test("go to who waits longest, and past those who left", () => {
    const slots = new Slots(1);
    const granted: string[] = [];
    const waiter = (name: string): { granted: () => void } => ({ granted: () => granted.push(name) });
    const [a, b, c] = [waiter("a"), waiter("b"), waiter("c")];
    expect(slots.take({ granted: () => {} })).toBe(true);
    expect([a, b, c].map((one) => slots.take(one))).toEqual([false, false, false]);
    expect(slots.leave(b)).toBe(true);
    slots.release();
    slots.release();
    expect(granted).toEqual(["a", "c"]);
    expect(slots.leave(a)).toBe(false);
    slots.release();
    expect(slots.take(b)).toBe(true);
  });
});
