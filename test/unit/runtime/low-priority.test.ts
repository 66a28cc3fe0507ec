import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Controller } from "../../../src/runtime/controller.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";

let clock: FakeClock;
let now: number;
let looked: string[];
let loop: Controller<string, string, string>;
let onLook: (key: string) => void;

beforeEach(() => {
  clock = new FakeClock();
  now = clock.now();
  clock.now = () => now;
  looked = [];
  onLook = () => {};
  loop = new Controller<string, string, string>(
    {
      name: "test",
      observe: (key) => key,
      decide: (key) => {
        looked.push(key);
        now += 5;
        onLook(key);
        return { actions: key.startsWith("acting") ? ["act"] : [], outcome: "Done" };
      },
      execute: async (_action, { signal }) => clock.sleep(1_000, signal).then(() => undefined),
    },
    { clock, log: createLogger({ level: "silent" }) },
  );
  onTestFinished(() => loop.stop());
});

const named = (name: string, count: number): string[] => Array.from({ length: count }, (_, nth) => `${name}-${nth}`);

test("reconciles low-priority keys when no other key waits, and reports their time", async () => {
  const done: number[] = [];
  loop.enqueueBehind(["waits-0", "waits-1", "waits-2"], (busyMs) => done.push(busyMs));
  for (const key of named("news", 3)) loop.enqueue(key);
  await settle();
  expect(looked).toEqual([...named("news", 3), ...named("waits", 3)]);
  expect(done).toEqual([15]);
});

test("promotes a low-priority key by an event, and reconciles it once", async () => {
  const done: number[] = [];
  loop.enqueueBehind(named("waits", 3), (busyMs) => done.push(busyMs));
  loop.enqueue("waits-2");
  await settle();
  expect(looked).toEqual(["waits-2", "waits-0", "waits-1"]);
  // The time of the promoted key does not count for the batch.
  expect(done).toEqual([10]);
});

test("finishes low-priority keys despite a constant flow of events", async () => {
  let rounds = 0;
  onLook = (key) => {
    if (key.startsWith("waits") || rounds === 100) return;
    rounds += 1;
    loop.enqueue(key);
    loop.enqueue(`more-${rounds}`);
  };
  let done = false;
  for (const key of named("news", 40)) loop.enqueue(key);
  loop.enqueueBehind(named("waits", 2), () => {
    done = true;
  });
  while (!done) await new Promise((resolve) => setImmediate(resolve));
  // A low-priority key comes after nineteen others.
  expect(looked.indexOf("waits-0")).toBe(19);
  expect(looked.indexOf("waits-1")).toBe(39);
});

test("ends a batch without keys at once", () => {
  const done: number[] = [];
  loop.enqueueBehind([], (busyMs) => done.push(busyMs));
  loop.enqueue("news");
  loop.enqueueBehind(["news"], (busyMs) => done.push(busyMs));
  expect(done).toEqual([0, 0]);
});

test("reconciles a running key again afterwards", async () => {
  loop.enqueue("acting");
  await settle();
  const done: number[] = [];
  loop.enqueueBehind(["acting"], (busyMs) => done.push(busyMs));
  expect(done).toEqual([0]);
  expect(looked).toEqual(["acting"]);
  await clock.advance(1_000);
  expect(looked).toEqual(["acting", "acting"]);
});
