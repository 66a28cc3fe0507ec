import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { SECONDS, secondsOf } from "../../support/harness/seconds.ts";

const pathOf = (name: string): string => fileURLToPath(new URL(`../../integration/${name}`, import.meta.url));

test("names only existing files", () => {
  expect(Object.keys(SECONDS).filter((name) => !existsSync(pathOf(name)))).toEqual([]);
});

test("finds a file by its folder, too, and gives a new one the median", () => {
  expect(secondsOf(pathOf("real-nodes/services.test.ts"))).toBe(SECONDS["real-nodes/services.test.ts"]);
  expect(secondsOf(pathOf("services.test.ts"))).toBe(SECONDS["services.test.ts"]);
  expect(secondsOf(pathOf("new.test.ts"))).toBe(30);
});
