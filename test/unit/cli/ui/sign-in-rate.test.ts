import { expect, test } from "vitest";
import { SignInRate } from "../../../../src/cli/ui/sign-in-rate.ts";

test("takes a team's tokens from one address at once, then one in three seconds, and never holds up other addresses", () => {
  const rate = new SignInRate();
  const atOnce = Array.from({ length: 20 }, () => rate.refusedFor("10.0.0.1", 0));
  expect(atOnce.every((seconds) => seconds === undefined)).toBe(true);
  expect(rate.refusedFor("10.0.0.1", 0)).toBe(3);
  expect(rate.refusedFor("10.0.0.2", 0)).toBeUndefined();
  expect([rate.refusedFor("10.0.0.1", 3_000), rate.refusedFor("10.0.0.1", 3_000)]).toEqual([undefined, 3]);
});

test("forgets the address that was used longest ago, beyond ten thousand", () => {
  const rate = new SignInRate();
  for (let times = 0; times < 21; times += 1) rate.refusedFor("10.0.0.1", 0);
  for (let index = 0; index < 10_000; index += 1) rate.refusedFor(`address ${index}`, 0);
  expect(rate.refusedFor("10.0.0.1", 0)).toBeUndefined();
});
