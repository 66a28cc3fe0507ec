import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { atMost } from "../../../../src/cli/shared/at-most.ts";

test("works on so many items at a time, and returns the results in the items' order", async () => {
  let running = 0;
  let most = 0;
  const results = await atMost(2, [3, 1, 2, 0], async (turns) => {
    running += 1;
    most = Math.max(most, running);
    for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    running -= 1;
    return `took ${turns}`;
  });
  expect(results).toEqual(["took 3", "took 1", "took 2", "took 0"]);
  expect(most).toBe(2);
});

test("rejects with the first error", async () => {
  const work = (item: string): Promise<string> => Promise.reject(new Error(`no ${item}`));
  await expect(atMost(1, ["a", "b"], work)).rejects.toThrow("no a");
});
