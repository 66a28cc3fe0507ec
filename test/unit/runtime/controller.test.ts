import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Controller } from "../../../src/runtime/controller.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
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

test("decides nothing before the stores show every write of the last decision", async () => {
  expect(await look()).toBe(1);
  shown.add("second");
  expect(await look()).toBe(1);
  shown.add("first");
  expect(await look()).toBe(2);
});

test("drops an expectation that is unmet after ten seconds", async () => {
  await look();
  shown.add("first");
  await clock.advance(9_900);
  expect(decisions).toBe(1);
  await clock.advance(200);
  expect(decisions).toBe(2);
});

test.each(["observe", "decide"])(
  "reconciles a key once at a time that enqueues itself meanwhile (%s)",
  async (where) => {
    let asked = false;
    const writes: PromiseWithResolvers<void>[] = [];
    const ask = (at: string): void => {
      if (at !== where || asked) return;
      asked = true;
      loop.enqueue("key");
    };
    const loop = new Controller<string, string, string>(
      {
        name: "asking",
        observe: (key) => {
          ask("observe");
          return key;
        },
        decide: () => {
          ask("decide");
          return { actions: writes.length < 2 ? ["write"] : [], outcome: "Done" };
        },
        execute: async () => {
          const write = Promise.withResolvers<void>();
          writes.push(write);
          await write.promise;
          return undefined;
        },
      },
      { clock, log: createLogger({ level: "silent" }) },
    );
    loop.enqueue("key");
    await settle();
    expect(writes).toHaveLength(1);
    writes[0]?.resolve();
    await settle();
    // The key was enqueued: it is reconciled again after its write.
    expect(writes).toHaveLength(2);
    writes[1]?.resolve();
    await loop.stop();
  },
);

test.each(["observe", "decide", "shown"])(
  "retries a key after a defect in %s, and goes on with the others",
  async (where) => {
    const done: string[] = [];
    let defects = 0;
    const fail = (at: string, key: string): void => {
      if (at !== where || key !== "broken" || defects === 2) return;
      defects += 1;
      throw new TypeError("a defect");
    };
    const loop = new Controller<string, string, string>(
      {
        name: "defective",
        observe: (key) => {
          fail("observe", key);
          return key;
        },
        decide: (key) => {
          fail("decide", key);
          return { actions: done.includes(key) ? [] : [key], outcome: "Done" };
        },
        execute: async (action) => {
          done.push(action);
          return (key) => {
            fail("shown", key);
            return true;
          };
        },
      },
      { clock, log: createLogger({ level: "silent" }) },
    );
    loop.enqueue("broken");
    loop.enqueue("sound");
    await clock.advance(5_000);
    expect(defects).toBe(2);
    expect(done.toSorted()).toEqual(["broken", "sound"]);
    await loop.stop();
  },
);

describe("an event during a failing reconcile", () => {
  /** Every reconcile takes this long and fails, after an event. */
  function failing(tookMs: number): { readonly begun: number[]; readonly loop: Controller<string, object, string> } {
    const begun: number[] = [];
    const loop = new Controller<string, object, string>(
      {
        name: "failing",
        observe: () => ({}),
        decide: () => ({ actions: ["write"], outcome: "Done" }),
        execute: async (_action, { signal }) => {
          begun.push(clock.now() - start);
          loop.enqueue("key");
          await clock.sleep(tookMs, signal);
          throw new Error("refused");
        },
      },
      { clock, log: createLogger({ level: "silent" }) },
    );
    const start = clock.now();
    return { begun, loop };
  }

  test("is reconciled at once, whatever the backoff", async () => {
    const { begun, loop } = failing(10_000);
    loop.enqueue("key");
    await clock.advance(100_000);
    await loop.stop();
    expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((count) => count * 10_000));
  });

  test("does not turn an immediate failure into a busy loop", async () => {
    const { begun, loop } = failing(1);
    loop.enqueue("key");
    await clock.advance(60_000);
    await loop.stop();
    // The first few by the backoff, the others once a second.
    expect(begun.length).toBeGreaterThan(60);
    expect(begun.length).toBeLessThan(70);
  });
});

describe("a key that keeps failing", () => {
  /** When it was tried, in ms since it first was, while time passes. */
  async function tried(error: Error, ms: number): Promise<number[]> {
    const begun: number[] = [];
    const start = clock.now();
    const loop = new Controller<string, object, string>(
      {
        name: "failing",
        observe: () => ({}),
        decide: () => ({ actions: ["write"], outcome: "Done" }),
        execute: async () => {
          begun.push(clock.now() - start);
          throw error;
        },
      },
      { clock, log: createLogger({ level: "silent" }) },
    );
    loop.enqueue("key");
    await clock.advance(ms);
    await loop.stop();
    return begun;
  }

  test("is retried every half minute at least without an event", async () => {
    const begun = await tried(new Error("refused"), 3_600_000);
    const pauses = begun.slice(1).map((at, index) => at - (begun[index] ?? 0));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(30_000);
    expect(begun.length).toBeGreaterThan(120);
  });

  test("is retried no sooner than Retry-After", async () => {
    const busy = kubeError("TooManyRequests", "too many requests", { retryAfterMs: 5_000 });
    expect(await tried(busy, 12_000)).toEqual([0, 5_000, 10_000]);
  });
});

test("counts a write as running until it is answered, and stops only then", async () => {
  const answer = Promise.withResolvers<undefined>();
  let stopped = false;
  const loop = new Controller<string, object, string>(
    {
      name: "writing",
      observe: () => ({}),
      decide: () => ({ actions: ["write"], outcome: "Done" }),
      execute: () => answer.promise,
    },
    { clock, log: createLogger({ level: "silent" }) },
  );
  loop.enqueue("key");
  await settle();
  const stopping = loop.stop().then(() => {
    stopped = true;
  });
  await settle();
  expect(stopped).toBe(false);
  expect(loop.running).toBe(1);
  answer.resolve(undefined);
  await stopping;
  expect(loop.running).toBe(0);
});

describe("an interrupted key", () => {
  /** A reconcile whose request takes this long. Returns when each began, and its failures. */
  async function interrupted(
    tookMs: number,
    action = "write",
  ): Promise<{ readonly begun: number[]; readonly aborted: number[] }> {
    const [begun, aborted]: [number[], number[]] = [[], []];
    const start = clock.now();
    const loop = new Controller<string, object, string>(
      {
        name: "interrupted",
        observe: () => ({}),
        decide: () => ({ actions: begun.length < 2 ? [action] : [], outcome: "Done" }),
        mayInterrupt: (one) => one === "write",
        execute: async (_action, { signal }) => {
          begun.push(clock.now() - start);
          signal.addEventListener("abort", () => aborted.push(clock.now() - start));
          await clock.sleep(tookMs, signal);
          return undefined;
        },
      },
      { clock, log: createLogger({ level: "silent" }) },
    );
    loop.enqueue("key");
    await clock.advance(10);
    loop.interrupt("key");
    await clock.advance(30_000);
    await loop.stop();
    return { begun, aborted };
  }

  test("is reconciled anew soon, though a cluster does not answer", async () => {
    expect(await interrupted(10_000)).toEqual({ begun: [0, 110], aborted: [110] });
  });

  test.each([
    ["of a cluster that answers", 50, "write"],
    ["that may not be interrupted", 10_000, "release"],
  ])("keeps the requests %s", async (_, tookMs, action) => {
    expect(await interrupted(tookMs, action)).toEqual({ begun: [0, tookMs], aborted: [] });
  });

  test("is reconciled at once when it was idle", async () => {
    expect(await look()).toBe(1);
    shown = new Set(["first", "second"]);
    controller.interrupt("key");
    await settle();
    expect(decisions).toBe(2);
  });
});
