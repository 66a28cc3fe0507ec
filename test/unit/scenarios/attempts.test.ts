import { expect, test } from "vitest";
import { BrokenPremise, takeAll } from "../../support/scenarios/attempts.ts";

/** Tasks whose attempts end when the test says so. */
class Tasks {
  readonly running = new Map<string, PromiseWithResolvers<void>>();
  readonly undone: string[][] = [];
  readonly failures: Promise<Map<string, unknown>>;

  constructor(names: readonly string[], atOnce: number) {
    this.failures = takeAll(names, {
      atOnce,
      take: async (name) => {
        const attempt = Promise.withResolvers<void>();
        this.running.set(name, attempt);
        await attempt.promise.finally(() => this.running.delete(name));
      },
      undo: async (names) => {
        this.undone.push([...names]);
      },
    });
  }

  get names(): string {
    return [...this.running.keys()].join(" ");
  }

  async pass(...names: readonly string[]): Promise<void> {
    for (const name of names) this.running.get(name)?.resolve();
    await settle();
  }

  async fail(name: string, error: Error): Promise<void> {
    this.running.get(name)?.reject(error);
    await settle();
  }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const late = new BrokenPremise("west was late");

test("takes no more tasks at once than it may, and the next one when one ends", async () => {
  const tasks = new Tasks(["a", "b", "c"], 2);
  expect(tasks.names).toBe("a b");
  await tasks.pass("a");
  expect(tasks.names).toBe("b c");
  await tasks.pass("b", "c");
  expect(await tasks.failures).toEqual(new Map());
  expect(tasks.undone).toEqual([]);
});

test("takes a task with a broken premise again after the others, with half as many at once", async () => {
  const tasks = new Tasks(["a", "b", "c", "d", "e", "f"], 4);
  await tasks.fail("b", late);
  await tasks.pass("a");
  expect(tasks.names).toBe("c d");
  await tasks.pass("c", "d");
  expect(tasks.undone).toEqual([["b"]]);
  expect(tasks.names).toBe("e f");
  await tasks.pass("e", "f");
  expect(tasks.names).toBe("b");
  await tasks.pass("b");
  expect(await tasks.failures).toEqual(new Map());
});

test("takes no failed task again", async () => {
  const tasks = new Tasks(["a", "b"], 2);
  const error = new Error("in east");
  await tasks.fail("a", error);
  await tasks.pass("b");
  expect(await tasks.failures).toEqual(new Map([["a", error]]));
  expect(tasks.undone).toEqual([]);
});

test("fails a task whose premise breaks each time", async () => {
  let attempts = 0;
  const failures = await takeAll(["a"], {
    atOnce: 16,
    take: () => {
      attempts += 1;
      return Promise.reject(late);
    },
    undo: () => Promise.resolve(),
  });
  expect(failures).toEqual(new Map([["a", late]]));
  expect(attempts).toBe(5);
});
