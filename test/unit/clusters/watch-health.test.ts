import { describe, expect, test } from "vitest";
import { unreadable, type WatchState } from "../../../src/clusters/watch-health.ts";

const now = 1_000_000;
const pods = { since: now - 40_000, reason: "forbidden" };
const nodes = { since: now - 10_000, reason: "no list" };
const state: WatchState = { pods: undefined, nodes: undefined, answeringSince: 0, patienceMs: 30_000 };

describe("the unreadable parts of a member", () => {
  test.each<[string, Partial<WatchState>, object]>([
    ["nothing, when nothing fails", {}, {}],
    [
      "its pods, when that has failed for longer than its probe may",
      { pods },
      { pods: "its pods cannot be read: forbidden" },
    ],
    ["nothing yet, at first", { nodes }, { dueAt: now + 20_000 }],
    [
      "its pods, and later its nodes, too",
      { pods, nodes },
      { pods: "its pods cannot be read: forbidden", dueAt: now + 20_000 },
    ],
    ["nothing that its probe has a word for", { pods, nodes, answeringSince: undefined }, {}],
    ["nothing yet, when it answers only since", { pods, answeringSince: now - 1_000 }, { dueAt: now + 29_000 }],
  ])("is %s", (_case, parts, expected) => {
    expect(unreadable({ ...state, ...parts }, now)).toEqual(expected);
  });

  test("count until the watch works, whatever single probes find", () => {
    const counted = { pods: pods.since };
    const words = { pods: "its pods cannot be read: forbidden" };
    expect(unreadable({ ...state, pods, counted, answeringSince: undefined }, now)).toEqual(words);
    expect(unreadable({ ...state, pods, counted, answeringSince: now }, now)).toEqual(words);
    // The watch worked in between.
    expect(unreadable({ ...state, pods: { ...pods, since: now }, counted }, now)).toEqual({ dueAt: now + 30_000 });
  });

  test("are judged again only when the result can change", () => {
    const { dueAt } = unreadable({ ...state, nodes }, now);
    expect(unreadable({ ...state, nodes }, dueAt ?? 0)).toEqual({ nodes: "its nodes cannot be read: no list" });
  });
});
