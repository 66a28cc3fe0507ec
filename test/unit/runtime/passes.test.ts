import { expect, test } from "vitest";
import { Passes } from "../../../src/runtime/passes.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

function scene() {
  const clock = new FakeClock();
  const begun = clock.now();
  const at: number[] = [];
  const ends: ((busyMs: number) => void)[] = [];
  const passes = new Passes<string>({
    clock,
    keys: () => ["a"],
    look: (_keys, done) => {
      at.push(clock.now() - begun);
      ends.push(done);
    },
  });
  return { clock, passes, at, end: (busyMs: number) => ends.pop()?.(busyMs) };
}

test("many that are asked for before one begins are one, as early as any was asked for", async () => {
  const { clock, passes, at } = scene();
  passes.ask(500);
  passes.ask(1_000);
  passes.ask(200);
  await clock.advance(5_000);
  expect(at).toEqual([200]);
});

test("one that is asked for during another comes after it, and after ten times what that has cost", async () => {
  const { clock, passes, at, end } = scene();
  passes.ask(0);
  passes.ask(0);
  passes.ask(300);
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
  const { passes, at, end } = scene();
  passes.ask(0);
  end(0);
  passes.ask(0);
  expect(at).toEqual([0, 0]);
});

test("none begins any more when all stops", async () => {
  const { clock, passes, at, end } = scene();
  passes.ask(0);
  passes.ask(100);
  passes.stop();
  end(10);
  expect(clock.pending).toBe(0);
  expect(at).toEqual([0]);
});
