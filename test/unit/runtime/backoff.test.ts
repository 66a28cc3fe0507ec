import { describe, expect, test } from "vitest";
import { Backoff, backoffMs, ConnectionBackoff } from "../../../src/runtime/backoff.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

describe("Backoff", () => {
  test("doubles up to its maximum, and restarts after a reset", () => {
    const backoff = new Backoff({ initialMs: 100, maxMs: 500, random: () => 1 });
    expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([100, 200, 400, 500, 500]);
    expect(backoff.attempts).toBe(5);
    backoff.reset();
    expect(backoff.next()).toBe(100);
  });

  test("returns between half and the whole of a step", () => {
    const least = new Backoff({ initialMs: 100, maxMs: 500, random: () => 0 });
    expect([1, 2, 3, 4].map(() => least.next())).toEqual([50, 100, 200, 250]);
  });

  test("stays at its maximum after thousands of attempts", () => {
    const backoff = new Backoff({ initialMs: 100, maxMs: 500, random: () => 1 });
    for (let attempt = 0; attempt < 5_000; attempt += 1) backoff.next();
    expect(backoff.next()).toBe(500);
  });
});

test("doubles a delay without jitter, up to its maximum", () => {
  const delays = [0, 1, 2, 3, 5_000].map((earlier) => backoffMs(earlier, { initialMs: 100, maxMs: 500 }));
  expect(delays).toEqual([100, 200, 400, 500, 500]);
});

describe("ConnectionBackoff", () => {
  function connection(): { clock: FakeClock; backoff: ConnectionBackoff } {
    const clock = new FakeClock();
    return {
      clock,
      backoff: new ConnectionBackoff({ initialMs: 100, maxMs: 800, healthyMs: 5_000, clock, random: () => 1 }),
    };
  }

  test("grows while connections work only briefly", async () => {
    const { clock, backoff } = connection();
    const delays: number[] = [];
    for (let attempt = 0; attempt < 4; attempt += 1) {
      backoff.working();
      await clock.advance(4_999);
      delays.push(backoff.ended());
    }
    expect(delays).toEqual([100, 200, 400, 800]);
  });

  test("is zero after a healthy while, and small for the next failure", async () => {
    const { clock, backoff } = connection();
    for (let attempt = 0; attempt < 4; attempt += 1) backoff.ended();
    backoff.working();
    await clock.advance(3_000);
    backoff.working();
    await clock.advance(2_000);
    expect([backoff.ended(), backoff.ended()]).toEqual([0, 100]);
  });
});
