import { expect, test } from "vitest";
import { WatchStream } from "../../../../src/kube/internal/watch-stream.ts";
import { ByteBudget } from "../../../../src/kube/limits.ts";
import { feed, TEXT } from "./small-chunks.ts";

const TIMEOUTS = { openMs: 1_000, idleMs: 1_000 };

test("keeps no chunk, however small, of a watch", async () => {
  const watch = new WatchStream(TIMEOUTS, new ByteBudget(1_000));
  feed(watch, 200, `${TEXT}\n`);
  expect((await watch.take())?.map(String)).toEqual([TEXT]);
  watch.cancel("done");
});

test("keeps no chunk, however small, of a refused watch", async () => {
  const watch = new WatchStream(TIMEOUTS, new ByteBudget(1_000));
  feed(watch, 403, TEXT);
  watch.onResponseEnd();
  expect((await watch.opened).refusal).toBe(TEXT);
});

test("counts unread lines with their overhead", async () => {
  const budget = new ByteBudget(10_000);
  const watch = new WatchStream(TIMEOUTS, budget);
  feed(watch, 200, "x\n".repeat(30));
  expect(budget.hold(9_000)).toBe(false);
  expect(await watch.take()).toHaveLength(30);
  expect(budget.hold(9_000)).toBe(true);
  budget.hold(-9_000);
  feed(watch, 200, "y\n".repeat(60));
  await watch.take();
  await expect(watch.take()).rejects.toThrow("the server's answers are larger than 10000 bytes together");
  expect(budget.hold(10_000)).toBe(true);
});
