import { expect, test } from "vitest";
import { yieldToEventLoop } from "../../../src/kube/event-loop.ts";

function work(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test("callers resume in order, and timers run between long work", async () => {
  const done: string[] = [];
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 0);
  const worker = async (name: string, ms: number): Promise<void> => {
    await yieldToEventLoop();
    work(ms);
    done.push(`${name} after ${ticks}`);
  };
  await Promise.all([worker("a", 0), worker("b", 0), worker("c", 15), worker("d", 15), worker("e", 15)]);
  clearInterval(timer);
  expect(done.map((line) => line.slice(0, 1)).join("")).toBe("abcde");
  const after = done.map((line) => Number(line.slice("a after ".length)));
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = after;
  expect([b, c]).toEqual([a, a]);
  expect(d).toBeGreaterThan(c);
  expect(e).toBeGreaterThan(d);
  // A later wait works as well.
  await yieldToEventLoop();
});
