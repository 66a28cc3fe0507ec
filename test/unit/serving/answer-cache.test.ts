import { beforeEach, describe, expect, test } from "vitest";
import { AnswerCache } from "../../../src/serving/answer-cache.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

let clock: FakeClock;
let asked: number;
beforeEach(() => {
  clock = new FakeClock();
  asked = 0;
});

function counting(): Promise<number> {
  asked += 1;
  return Promise.resolve(asked);
}

describe("cached answers", () => {
  test("are requested once, also by many callers at the same time", async () => {
    const cache = new AnswerCache<number>({ lifetimeMs: () => 1_000, most: 10, clock });
    expect(await Promise.all([cache.of("a", counting), cache.of("a", counting)])).toEqual([1, 1]);
    await clock.advance(999);
    expect(await cache.of("a", counting)).toBe(1);
    await clock.advance(1);
    expect(await cache.of("a", counting)).toBe(2);
  });

  test("stay for as long as the answer says", async () => {
    const cache = new AnswerCache<number>({ lifetimeMs: (answer) => (answer === 1 ? 10 : 1_000), most: 10, clock });
    await cache.of("a", counting);
    await clock.advance(10);
    await cache.of("a", counting);
    await clock.advance(999);
    expect(await cache.of("a", counting)).toBe(2);
  });

  test("do not include failures", async () => {
    const cache = new AnswerCache<number>({ lifetimeMs: () => 1_000, most: 10, clock });
    await expect(cache.of("a", () => Promise.reject(new Error("no host")))).rejects.toThrow("no host");
    expect(await cache.of("a", counting)).toBe(1);
  });

  test("are limited in number", async () => {
    const cache = new AnswerCache<number>({ lifetimeMs: () => 1_000, most: 2, clock });
    for (const key of ["a", "b", "c"]) await cache.of(key, counting);
    expect(await cache.of("c", counting)).toBe(3);
    expect(await cache.of("a", counting)).toBe(4);
  });
});
