import { beforeEach, describe, expect, test } from "vitest";
import { Futility } from "../../../../src/controllers/preferences/futility.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

describe("a member that did not get what was moved for it", () => {
  let futility: Futility;
  beforeEach(() => {
    futility = new Futility();
  });

  const pauseAfter = (times: number): number | undefined => {
    for (let time = 0; time < times; time += 1) futility.note("web", "west", 0);
    return futility.of("web").get("west");
  };

  test.each<[number, number]>([
    [1, 10 * MINUTE],
    [2, 20 * MINUTE],
    [3, 40 * MINUTE],
    [8, 1280 * MINUTE],
    [9, DAY],
    [20, DAY],
  ])("%d times is left alone for %d ms", (times, ms) => {
    expect(pauseAfter(times)).toBe(ms);
  });

  test("is left alone from the last time on, by that workload only", () => {
    futility.note("web", "west", 5);
    expect([...futility.of("web")]).toEqual([["west", 5 + 10 * MINUTE]]);
    expect([...futility.of("db")]).toEqual([]);
  });

  test.each<[string, () => void]>([
    ["a replica has stayed there", () => futility.clear("web", "west")],
    ["the workload is divided anew", () => futility.forget("web")],
  ])("begins anew when %s", (_, settle) => {
    pauseAfter(3);
    settle();
    expect([...futility.of("web")]).toEqual([]);
    expect(pauseAfter(1)).toBe(10 * MINUTE);
  });
});
