import { expect, test } from "vitest";
import { FailureNews } from "../../../src/runtime/failure-news.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

test("logs a flapping connection every five minutes, in both directions", () => {
  const clock = { at: 0, now: () => clock.at };
  const news = new FailureNews(clock);
  let failures = 0;
  let recoveries = 0;
  for (; clock.at < 20 * MINUTE; clock.at += SECOND) {
    if (news.failed("reset")) failures += 1;
    clock.at += 4 * SECOND;
    if (news.works()) recoveries += 1;
  }
  expect({ failures, recoveries }).toEqual({ failures: 4, recoveries: 4 });
});

test("logs a failure after a healthy while at once, and then hourly", () => {
  const clock = { at: 0, now: () => clock.at };
  const news = new FailureNews(clock);
  expect(news.failed("reset")).toBe(true);
  expect(news.works()).toBe(true);
  clock.at += 10 * SECOND;
  expect(news.failed("reset")).toBe(true);
  clock.at += 59 * MINUTE;
  expect(news.failed("reset")).toBe(false);
  clock.at += MINUTE;
  expect(news.failed("reset")).toBe(true);
  expect([news.works(), news.works()]).toEqual([true, false]);
});
