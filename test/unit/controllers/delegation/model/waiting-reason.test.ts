import { describe, expect, test } from "vitest";
import { unreadable } from "../../../../../src/clusters/watch-health.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { hasProxy } from "../../../../../src/controllers/delegation/model/view.ts";
import { report } from "../../../../../src/controllers/delegation/model/waiting-reason.ts";
import { isFaltering } from "../../../../../src/controllers/delegation/observe.ts";
import { notAnswering } from "../../../../../src/placement/member-candidate.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { member, memory, type TestMember, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const full = "west: cpu: 4 requested, 2 left";
const silent = notAnswering("connect ECONNREFUSED 10.0.0.1:6443").message;
const lost = `west: ${silent}`;
const east = "east: its virtual node is cordoned";

interface Told {
  readonly afterMs: number;
  /** The first is what the pod was told, the last what it is told now. */
  readonly reasons?: readonly [string, ...string[]];
  readonly members?: readonly TestMember[];
}

/** How many reports there are of a pod that was told the first, and now the second. */
function told(reported: string, message: string, { afterMs, reasons = ["NotPlaced"], members = [] }: Told): number {
  const [first] = reasons;
  const proxy = proxyPod();
  const observed = world(proxy, members, { memory: memory({ reported, reportedAt: now, reportedReason: first }) });
  return hasProxy(observed)
    ? report({ reason: reasons.at(-1) ?? first, message }, observed, now + afterMs).actions.length
    : 0;
}

describe("a pod that waits", () => {
  const { pods, nodes } = unreadable(
    {
      pods: { since: 0, reason: "reset" },
      nodes: { since: 0, reason: "reset" },
      answeringSince: 0,
      patienceMs: 1,
    },
    now,
  );

  test.each([
    ["does not answer", silent],
    ["cannot be read of its pods", pods],
    ["cannot be read of its nodes", nodes],
    ["is being read", "its pods and nodes are still being read"],
  ])("hears once a minute at most of a member that %s, and that it answers again", (_case, words) => {
    const [before, gone] = [`${east}; ${full}`, `${east}; west: ${words}`];
    for (const [from, to] of [
      [before, gone],
      [gone, before],
      [gone, `${east}; ${lost} and more`],
    ] as const) {
      expect([59_999, 60_000].map((afterMs) => told(from, to, { afterMs }))).toEqual([0, 1]);
    }
  });

  test.each([
    ["west: cpu: 2 requested, 1 left", "west: cpu: 2 requested, 500m left"],
    ["west: memory: 2Gi requested, 1Gi left", "west: memory: 2Gi requested, 1536Mi left"],
    ["west: memory: 2Gi requested, 1Gi of 4Gi left", "west: memory: 2Gi requested, 123456Ki of 4Gi left"],
    ["west: memory: 2Gi requested, 1G left", "west: memory: 2Gi requested, 1.5e9 left"],
  ])("hears once a minute at most of other amounts, whatever their units: %s", (from, to) => {
    for (const [before, after] of [
      [from, to],
      [to, from],
    ] as const) {
      expect([59_999, 60_000].map((afterMs) => told(before, after, { afterMs }))).toEqual([0, 1]);
    }
  });

  test.each([
    ["west: cpu: 2 requested, 1 left", "west: memory: 2 requested, 1 left"],
    ["west: Secret 1m is missing", "west: Secret 1mx is missing"],
    ["west: node-1m is full", "west: node-2m is full"],
    ["west: too full, 5 minutes", "west: too full, 5 months"],
  ])("hears at once of what only looks like another amount: %s", (from, to) => {
    expect(told(from, to, { afterMs: 1 })).toBe(1);
  });

  test("hears at once of anything else, also of another member at the same time", () => {
    expect(told(`${east}; ${full}`, `east: its Cluster is being deleted; ${lost}`, { afterMs: 1 })).toBe(1);
    expect(told(full, "west: its virtual node is cordoned", { afterMs: 1 })).toBe(1);
    expect(told(full, `${east}; ${full}`, { afterMs: 1 })).toBe(1);
  });

  test("hears at once when the reason is another one, and later when it is not", () => {
    const held = "west: has the pod and does not answer; no other member gets it before that is known";
    expect(told(full, held, { afterMs: 1, reasons: ["Unschedulable", "ClusterNotReady"] })).toBe(1);
    expect(told(held, lost, { afterMs: 1, reasons: ["ClusterNotReady", "NotPlaced"] })).toBe(1);
    const [slow, busy] = ["no leader", "timed out"].map((why) => `west: may have the pod, and fails to say so: ${why}`);
    expect(told(slow ?? "", busy ?? "", { afterMs: 1, reasons: ["ClusterNotReady"] })).toBe(0);
    expect(told(slow ?? "", busy ?? "", { afterMs: 60_000, reasons: ["ClusterNotReady"] })).toBe(1);
  });

  test("hears nothing of a member that has failed to answer once, however long ago the last word was", () => {
    const afterMs = 3_600_000;
    const faltering = [member("west", { faltering: true })];
    expect(told(full, lost, { afterMs, members: faltering })).toBe(0);
    expect(told(full, lost, { afterMs, members: [member("west")] })).toBe(1);
    expect(told(`${east}; ${full}`, lost, { afterMs, members: faltering })).toBe(1);
  });

  test("hears what it was not told when the minute is over", () => {
    const proxy = proxyPod();
    const west = member("west");
    const closed = { ...west, candidate: { ...west.candidate, closed: notAnswering("reset") } };
    const observed = world(proxy, [closed], {
      memory: memory({ reported: full, reportedAt: now, reportedReason: "NotPlaced" }),
    });
    expect(decide(observed, now + 1)).toMatchObject({ actions: [], requeueAt: now + 60_000 });
    expect(decide(observed, now + 60_000).actions).toMatchObject([
      { type: "report", message: "west: its API server does not answer: reset" },
    ]);
  });
});

describe("a pod that has waited for long", () => {
  const excluded = { excludes: () => "not named by legation.dev/clusters" };
  const message = "west: not named by legation.dev/clusters";
  const waiting = (uid: string) => {
    const proxy = proxyPod({ uid });
    const reported = memory({ reported: message, reportedAt: now, reportedReason: "NotPlaced" });
    return world(proxy, [member("west")], { memory: reported, ...excluded });
  };

  test("hears the same again, in an event alone, before the last one is forgotten", () => {
    const uid = "7bd5d1b8-35b4-42d5-9e04-5ae6e7bc6d5a";
    const { requeueAt = 0 } = decide(waiting(uid), now + 60_000);
    expect(requeueAt).toBeGreaterThanOrEqual(now + 50 * 60_000);
    expect(requeueAt).toBeLessThan(now + 60 * 60_000);
    expect(decide(waiting(uid), requeueAt - 1).actions).toEqual([]);
    expect(decide(waiting(uid), requeueAt).actions).toEqual([
      { type: "report", proxyUid: uid, reason: "NotPlaced", message, again: true },
    ]);
  });

  test("hears it at another time than others that wait for as long", () => {
    const uids = ["00000000", "0000ffff", "12345678", "fedcba98"].map(
      (start) => `${start}-35b4-42d5-9e04-5ae6e7bc6d5a`,
    );
    const times = uids.map((uid) => decide(waiting(uid), now + 60_000).requeueAt);
    expect(new Set(times).size).toBe(uids.length);
  });
});

describe("a member", () => {
  const sound = { probed: { reachable: true }, reachable: true, read: true, nodesRead: true, unreadable: {} };
  test.each([
    ["is sound", {}, false],
    ["has failed a probe", { probed: { reachable: true, message: "reset" } }, true],
    ["has lost its watch", { reachable: false }, true],
    ["is being read", { reachable: false, read: false }, true],
    ["is lost", { probed: { reachable: false, message: "reset" }, reachable: false }, false],
    ["cannot be read", { reachable: false, unreadable: { pods: "its pods cannot be read: reset" } }, false],
    ["has nodes that cannot be read", { nodesRead: false, unreadable: { nodes: "no" } }, false],
  ])("that %s", (_case, parts, isSo) => {
    expect(isFaltering({ ...sound, ...parts })).toBe(isSo);
  });
});
