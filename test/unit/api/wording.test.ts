import { describe, expect, test } from "vitest";
import { age, ageOf, amountText, counted, countedAre, noAnswer, percent } from "../../../src/api/wording.ts";

test.each([
  [0, "0 pods", "are"],
  [1, "1 pod", "is"],
  [2, "2 pods", "are"],
])("counts %i as %s", (number, words, are) => {
  expect(counted(number)).toBe(words);
  expect(counted(number, "proxy pod")).toBe(words.replace("pod", "proxy pod"));
  expect(countedAre(number)).toBe(`${words} ${are}`);
  expect(countedAre(number, "on Node west")).toBe(`${words} on Node west ${are}`);
});

describe("a time span", () => {
  const MINUTE = 60_000;
  test.each([
    [-5, "0s"],
    [23_900, "23s"],
    [2 * MINUTE, "2m"],
    [130_000, "2m10s"],
    [59 * MINUTE, "59m"],
    [200 * MINUTE, "3h20m"],
    [47 * 60 * MINUTE, "47h"],
    [48 * 60 * MINUTE, "2d"],
    [50 * 60 * MINUTE, "2d2h"],
    [8 * 24 * 60 * MINUTE + 1_000, "8d"],
    [200 * 60 * MINUTE, "8d"],
  ])("of %i ms is %s", (ms, text) => {
    expect(age(ms)).toBe(text);
    expect(ageOf(new Date(0).toISOString(), ms)).toBe(text);
  });

  test("without an answer is written in seconds", () => {
    expect(noAnswer(50)).toBe("no answer within 0.05 s");
  });

  test.each([undefined, "", "yesterday"])("since %j is unknown", (at) => {
    expect(ageOf(at, 0)).toBeUndefined();
  });
});

test.each([
  ["cpu", 12.54, "12.5"],
  ["memory", 512, "512"],
  ["memory", 3.2 * 2 ** 30, "3.2Gi"],
  ["ephemeral-storage", 1536 * 2 ** 20, "1.5Gi"],
  ["nvidia.com/gpu", 2048, "2048"],
])("writes %s %d as %s", (resource, amount, text) => {
  expect(amountText(resource, amount)).toBe(text);
});

test.each([
  [0, "0 %"],
  [0.004, "under 1 %"],
  [0.126, "13 %"],
  [1.2, "120 %"],
])("writes the part %d as %s", (part, text) => {
  expect(percent(part)).toBe(text);
});
