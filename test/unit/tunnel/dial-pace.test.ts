import { describe, expect, test } from "vitest";
import { DialPace } from "../../../src/tunnel/dial-pace.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

/** Takes turns, and notes when each came, in ms. */
function paced() {
  const clock = new FakeClock(0);
  const pace = new DialPace(clock);
  const turns: number[] = [];
  const take = (count: number): void => {
    for (let left = count; left > 0; left -= 1) pace.take(() => turns.push(clock.now()));
  };
  return { clock, turns, take };
}

describe("the pace of dials", () => {
  test("spreads a burst", async () => {
    const { clock, turns, take } = paced();
    take(5);
    await clock.advance(1_000);
    expect(turns).toEqual([0, 4, 8, 12, 16]);
    expect(clock.pending).toBe(0);
  });

  test("lets none wait that come one at a time", async () => {
    const { clock, turns, take } = paced();
    for (let at = 0; at < 40; at += 10) {
      take(1);
      await clock.advance(10);
    }
    expect(turns).toEqual([0, 10, 20, 30]);
  });

  test("keeps the order of those that come while others wait", async () => {
    const clock = new FakeClock(0);
    const pace = new DialPace(clock);
    const order: number[] = [];
    for (let index = 0; index < 6; index += 1) pace.take(() => order.push(index));
    await clock.advance(7);
    pace.take(() => order.push(6));
    await clock.advance(1_000);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });
});
