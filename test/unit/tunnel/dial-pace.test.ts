import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { AgentSession } from "../../../src/tunnel/agent-session.ts";
import { DialPace } from "../../../src/tunnel/dial-pace.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

/** Takes turns, and notes when each came, in ms. */
function paced() {
  const clock = new FakeClock(0);
  const pace = new DialPace(clock);
  const turns: number[] = [];
  const take = (count: number): void => {
    for (let left = count; left > 0; left -= 1)
      pace.take(
        () => turns.push(clock.now()),
        () => true,
      );
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
    for (let index = 0; index < 6; index += 1)
      pace.take(
        () => order.push(index),
        () => true,
      );
    await clock.advance(7);
    pace.take(
      () => order.push(6),
      () => true,
    );
    await clock.advance(1_000);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  test("gives no turn to dials that were given up, so that a later one does not wait for theirs", async () => {
    const clock = new FakeClock(0);
    const agent = new PassThrough();
    const session = new AgentSession(agent, {
      agent: { cluster: "west", uid: "1" },
      onCredentials: () => {},
      onFacts: () => {},
      onEnd: () => {},
      clock,
    });
    const sent: number[] = [];
    const write = agent.write.bind(agent);
    agent.write = (line: string): boolean => {
      if (line.includes('"dial"')) sent.push(clock.now());
      return write(line);
    };
    const leaving = new AbortController();
    const given = Array.from({ length: 900 }, () => session.dial(leaving.signal));
    leaving.abort();
    await Promise.allSettled(given);
    const dialled = session.dial(new AbortController().signal);
    await clock.advance(1_000);
    expect(sent).toEqual([0, 4]);
    session.close("over");
    await expect(dialled).rejects.toThrow("over");
  });
});
