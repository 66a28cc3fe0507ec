import { expect, test } from "vitest";
import { IdleTimes } from "../../../../src/controllers/copying/idle.ts";

test("the time without users begins when the last one is gone, and anew when there was one in between", () => {
  let now = 100;
  const idle = new IdleTimes<string>({ now: () => now });
  expect(idle.note("a", true)).toBe(100);
  now = 200;
  expect(idle.note("a", false)).toBe(200);
  now = 300;
  expect(idle.note("a", false)).toBe(200);
  expect(idle.note("b", false)).toBe(300);
  expect(idle.note("a", true)).toBe(300);
  now = 400;
  expect(idle.note("a", false)).toBe(400);
  idle.forget("a");
  now = 500;
  expect(idle.note("a", false)).toBe(500);
});
