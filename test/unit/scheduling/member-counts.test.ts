import { expect, test } from "vitest";
import { MemberCounts } from "../../../src/scheduling/member-counts.ts";

test("counts a pod in one member at a time", () => {
  const pods = new MemberCounts();
  for (const [uid, member] of [
    ["a", "west"],
    ["b", "west"],
    ["c", "east"],
    ["a", "east"],
    ["a", "east"],
  ] as const) {
    pods.move(uid, member);
  }
  expect([Object.fromEntries(pods.counts), pods.size]).toEqual([{ west: 1, east: 2 }, 3]);
  expect([pods.memberOf("a"), pods.memberOf("unknown")]).toEqual(["east", undefined]);
  pods.move("b", undefined);
  pods.move("unknown", undefined);
  expect([Object.fromEntries(pods.counts), pods.size]).toEqual([{ east: 2 }, 2]);
});

test("returns the counts without one pod, and keeps its own", () => {
  const pods = new MemberCounts();
  pods.move("a", "west");
  pods.move("b", "east");
  expect(Object.fromEntries(pods.without("a"))).toEqual({ west: 0, east: 1 });
  expect(Object.fromEntries(pods.without("unknown"))).toEqual({ west: 1, east: 1 });
  expect(Object.fromEntries(pods.counts)).toEqual({ west: 1, east: 1 });
});
