import { afterEach, beforeEach, expect, test } from "vitest";
import { Controller } from "../../../src/runtime/controller.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";

interface Seen {
  readonly shown: ReadonlySet<string>;
}

let clock: FakeClock;
let shown: Set<string>;
let decisions: number;
let controller: Controller<string, Seen, string>;

beforeEach(() => {
  clock = new FakeClock();
  shown = new Set();
  decisions = 0;
  controller = new Controller<string, Seen, string>(
    {
      name: "test",
      observe: () => ({ shown }),
      decide: () => {
        decisions += 1;
        return { actions: decisions === 1 ? ["first", "second"] : [], outcome: "Done" };
      },
      execute: async (action) => (seen) => seen.shown.has(action),
    },
    { clock, log: createLogger({ level: "silent" }) },
  );
});
afterEach(() => controller.stop());

async function look(): Promise<number> {
  controller.enqueue("key");
  await settle();
  return decisions;
}

test("nothing is decided before the stores show every write of the last decision", async () => {
  expect(await look()).toBe(1);
  shown.add("second");
  expect(await look()).toBe(1);
  shown.add("first");
  expect(await look()).toBe(2);
});

test("a write that is not shown within ten seconds is waited for no longer", async () => {
  await look();
  shown.add("first");
  await clock.advance(9_900);
  expect(decisions).toBe(1);
  await clock.advance(200);
  expect(decisions).toBe(2);
});
