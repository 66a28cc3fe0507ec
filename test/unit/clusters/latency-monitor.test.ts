import { describe, expect, test } from "vitest";
import { LatencyMonitor, UnresponsiveTime } from "../../../src/clusters/latency-monitor.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

function start(): { clock: FakeClock; latency: LatencyMonitor; changes: boolean[] } {
  const clock = new FakeClock();
  const changes: boolean[] = [];
  const latency: LatencyMonitor = new LatencyMonitor({ clock, onChange: () => changes.push(latency.overdue) });
  return { clock, latency, changes };
}

describe("a response", () => {
  test("in time changes nothing, and leaves no timer", async () => {
    const { clock, latency, changes } = start();
    expect(await latency.of(Promise.resolve("made"))).toBe("made");
    await clock.advance(60_000);
    expect(changes).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test("is overdue after three seconds, until the last late one arrives", async () => {
    const { clock, latency, changes } = start();
    const first = Promise.withResolvers<void>();
    const second = Promise.withResolvers<void>();
    const both = [latency.of(first.promise), latency.of(second.promise)];
    await clock.advance(2_999);
    expect(latency.overdue).toBe(false);
    await clock.advance(1);
    expect(latency.overdue).toBe(true);
    first.resolve();
    await both[0];
    expect(latency.overdue).toBe(true);
    second.resolve();
    await both[1];
    expect(changes).toEqual([true, false]);
  });

  test("that failed counts as overdue until the member answers again", async () => {
    const { latency, changes } = start();
    await expect(latency.of(Promise.reject(new Error("cut")))).rejects.toThrow("cut");
    latency.failed();
    latency.failed();
    expect(latency.overdue).toBe(true);
    latency.answered();
    expect(changes).toEqual([true, false]);
  });
});

test("adds up the times without an answer, the present one included", async () => {
  const clock = new FakeClock();
  const unresponsive = new UnresponsiveTime(clock);
  await clock.advance(1_000);
  expect(unresponsive.totalMs).toBe(0);
  unresponsive.note(false);
  await clock.advance(1_000);
  unresponsive.note(false);
  await clock.advance(500);
  expect(unresponsive.totalMs).toBe(1_500);
  unresponsive.note(true);
  await clock.advance(60_000);
  unresponsive.note(false);
  await clock.advance(250);
  unresponsive.note(true);
  expect(unresponsive.totalMs).toBe(1_750);
});
