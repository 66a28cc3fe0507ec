import { expect, test } from "vitest";
import { PacedResync } from "../../../src/runtime/paced-resync.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

function scene() {
  const clock = new FakeClock();
  const begun = clock.now();
  const at: number[] = [];
  const ends: ((busyMs: number) => void)[] = [];
  const resync = new PacedResync<string>({
    clock,
    keys: () => ["a"],
    reconcile: (_keys, done) => {
      at.push(clock.now() - begun);
      ends.push(done);
    },
  });
  return { clock, resync, at, end: (busyMs: number) => ends.pop()?.(busyMs) };
}

test("many that are asked for before one begins are one, as early as any was asked for", async () => {
  const { clock, resync, at } = scene();
  resync.request(500);
  resync.request(1_000);
  resync.request(200);
  await clock.advance(5_000);
  expect(at).toEqual([200]);
});

test("one that is asked for during another comes after it, and after ten times what that has cost", async () => {
  const { clock, resync, at, end } = scene();
  resync.request(0);
  resync.request(0);
  resync.request(300);
  await clock.advance(2_000);
  expect(at).toEqual([0]);
  end(100);
  await clock.advance(999);
  expect(at).toEqual([0]);
  await clock.advance(1);
  expect(at).toEqual([0, 3_000]);
  end(0);
  await clock.advance(10_000);
  expect(at).toHaveLength(2);
});

test("one that costs next to nothing keeps nobody waiting", async () => {
  const { resync, at, end } = scene();
  resync.request(0);
  end(0);
  resync.request(0);
  expect(at).toEqual([0, 0]);
});

test("none begins any more when all stops", async () => {
  const { clock, resync, at, end } = scene();
  resync.request(0);
  resync.request(100);
  resync.stop();
  end(10);
  expect(clock.pending).toBe(0);
  expect(at).toEqual([0]);
});
