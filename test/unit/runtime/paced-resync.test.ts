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
    rests: 10,
    keys: () => ["a"],
    reconcile: (_keys, done) => {
      at.push(clock.now() - begun);
      ends.push(done);
    },
  });
  return { clock, resync, at, end: (busyMs: number) => ends.pop()?.(busyMs) };
}

test("coalesces requests before a resync begins, at the earliest time requested", async () => {
  const { clock, resync, at } = scene();
  resync.request(500);
  resync.request(1_000);
  resync.request(200);
  await clock.advance(5_000);
  expect(at).toEqual([200]);
});

test("starts a resync requested during another after a rest of ten times its cost", async () => {
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

test("rests hardly at all after a cheap resync", async () => {
  const { resync, at, end } = scene();
  resync.request(0);
  end(0);
  resync.request(0);
  expect(at).toEqual([0, 0]);
});

test("starts no resync after it was stopped", async () => {
  const { clock, resync, at, end } = scene();
  resync.request(0);
  resync.request(100);
  resync.stop();
  end(10);
  expect(clock.pending).toBe(0);
  expect(at).toEqual([0]);
});
