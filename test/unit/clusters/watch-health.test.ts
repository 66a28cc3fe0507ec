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
    [
      "nothing, when its pods are listed late",
      { pods: { ...pods, isLate: true }, answeringSince: now },
      { dueAt: now + 10_000 },
    ],
    [
      "slow, when its pods have been listed for ten seconds, however long it takes",
      { pods: { ...pods, isLate: true }, listing: { pods: now - 600_000 } },
      { slow: "its pods are being listed since 1970-01-01T00:06:40Z" },
    ],
    ["nothing yet, when its pods are being listed", { listing: { pods: now - 4_000 } }, { dueAt: now + 6_000 }],
    [
      "slow, when the watch of its pods is not answered",
      { pods: { ...pods, isLate: true } },
      { slow: "its pods are not watched, for want of an answer, since 1970-01-01T00:16:00Z" },
    ],
    [
      "its pods, and not slow, when a list that takes long is refused",
      { pods, listing: { pods: now - 60_000 } },
      { pods: "its pods cannot be read: forbidden" },
    ],
    ["nothing that its probe has a word for, however slow", { listing: { pods: 0 }, answeringSince: undefined }, {}],
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
