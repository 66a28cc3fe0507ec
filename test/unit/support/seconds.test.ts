import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { SECONDS, secondsOf } from "../../support/harness/seconds.ts";

const pathOf = (name: string): string => fileURLToPath(new URL(`../../integration/${name}`, import.meta.url));

test("seconds are known of files that are there", () => {
  expect(Object.keys(SECONDS).filter((name) => !existsSync(pathOf(name)))).toEqual([]);
});

test("a file has its seconds by its folder, too, and a new one what the middle one takes", () => {
  expect(secondsOf(pathOf("real-nodes/services.test.ts"))).toBe(SECONDS["real-nodes/services.test.ts"]);
  expect(secondsOf(pathOf("services.test.ts"))).toBe(SECONDS["services.test.ts"]);
  expect(secondsOf(pathOf("new.test.ts"))).toBe(30);
});
