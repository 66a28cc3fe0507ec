import { describe, expect, test } from "vitest";
import { unreadable } from "../../../../../src/clusters/watch-health.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { report } from "../../../../../src/controllers/delegation/decision/report.ts";
import { hasProxy, type View } from "../../../../../src/controllers/delegation/decision/view.ts";
import { isFaltering } from "../../../../../src/controllers/delegation/observe.ts";
import { withoutAmounts } from "../../../../../src/kube/messages.ts";
import type { Refusal } from "../../../../../src/placement/candidate.ts";
import {
  BEING_REMOVED,
  CORDONED,
  NO_VIRTUAL_NODE,
  notAnswering,
} from "../../../../../src/placement/member-candidate.ts";
import { because, type WaitReason, type WaitRefusal } from "../../../../../src/placement/needs.ts";
import { notEnoughLeft, overLimit, tooLarge, type Why } from "../../../../../src/placement/refusal-messages.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { member, memory, type TestMember, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const full: Refusal = { cluster: "west", ...notEnoughLeft({ resource: "cpu", wanted: 4, left: 2 }) };
const silent = notAnswering("connect ECONNREFUSED 10.0.0.1:6443");
const lost: Refusal = { cluster: "west", ...silent };
const east: Refusal = { cluster: "east", ...CORDONED };

interface Reported {
  readonly afterMs: number;
  /** The first reason was reported, the last one is to be reported now. */
  readonly reasons?: readonly [string, ...string[]];
  readonly members?: readonly TestMember[];
}

/** Counts the reports of a pod with the first refusals reported, and the second ones now. */
function told(
  before: readonly WaitRefusal[],
  after: readonly WaitRefusal[],
  { afterMs, reasons = ["NotPlaced"], members = [] }: Reported,
): number {
  const [first] = reasons;
  const observed = world(proxyPod(), members, { memory: memory({ reported: { ...because(first, before), at: now } }) });
  if (!hasProxy(observed)) return 0;
  return report(because(reasons.at(-1) ?? first, after), observed, now + afterMs).actions.length;
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
    ["does not answer", silent.message],
    ["cannot be read of its pods", pods],
    ["cannot be read of its nodes", nodes],
    ["is being read", "its pods and nodes are still being read"],
  ])("is told once a minute at most that a member %s, and that it answers again", (_case, words) => {
    const unheard = { cluster: "west", reason: "ClusterNotReady", message: words ?? "", silent: true } as const;
    const [before, gone] = [
      [east, full],
      [east, unheard],
    ];
    for (const [from, to] of [
      [before, gone],
      [gone, before],
      [gone, [east, { ...lost, message: `${lost.message} and more` }]],
    ] as const) {
      expect([59_999, 60_000].map((afterMs) => told(from, to, { afterMs }))).toEqual([0, 1]);
    }
  });

  const west = (why: Why): Refusal[] => [{ cluster: "west", ...why }];
  const cpu = (left: number): Refusal[] => west(notEnoughLeft({ resource: "cpu", wanted: 2, left }));
  const memoryLeft = (left: number): Refusal[] =>
    west(overLimit({ resource: "memory", wanted: 2 ** 31, left, limit: 2 ** 32 }));
  const quota = (pods: number): Refusal[] => {
    const message = `exceeded quota: small, used: pods=${pods}`;
    return west({ reason: "RefusedByMember", message, dedupe: withoutAmounts(message) });
  };

  test.each<[string, Refusal[], Refusal[]]>([
    ["cores", cpu(1), cpu(0.5)],
    ["bytes", memoryLeft(2 ** 30), memoryLeft(123_456)],
    ["pods of a quota", quota(5), quota(6)],
  ])("is told once a minute at most of other amounts of %s", (_what, from, to) => {
    for (const [before, after] of [
      [from, to],
      [to, from],
    ] as const) {
      expect([59_999, 60_000].map((afterMs) => told(before, after, { afterMs }))).toEqual([0, 1]);
    }
  });

  test.each<[string, Refusal[], Refusal[]]>([
    ["resource", cpu(1), west(notEnoughLeft({ resource: "memory", wanted: 2, left: 1 }))],
    ["reason", cpu(1), west(tooLarge({ resource: "cpu", wanted: 2, largest: 1 }))],
    [
      "name",
      west({ reason: "RefusedByMember", message: "Secret 1m is missing" }),
      west({ reason: "RefusedByMember", message: "Secret 2m is missing" }),
    ],
  ])("is told at once of another %s", (_what, from, to) => {
    expect(told(from, to, { afterMs: 1 })).toBe(1);
  });

  test("is told at once of anything else, also about another member at the same time", () => {
    expect(told([east, full], [{ cluster: "east", ...BEING_REMOVED }, lost], { afterMs: 1 })).toBe(1);
    expect(told([full], west(CORDONED), { afterMs: 1 })).toBe(1);
    expect(told([full], [east, full], { afterMs: 1 })).toBe(1);
    expect(told(west(NO_VIRTUAL_NODE), west(CORDONED), { afterMs: 1 })).toBe(1);
  });

  test("is told at once if the reason is another one, and later if it is the same", () => {
    const reason = "ClusterNotReady";
    const held = west({
      reason,
      message: "has the pod and does not answer; no other member gets it before that is known",
    });
    expect(told([full], held, { afterMs: 1, reasons: ["Unschedulable", reason] })).toBe(1);
    expect(told(held, [lost], { afterMs: 1, reasons: [reason, "NotPlaced"] })).toBe(1);
    const doubt = (why: string): Refusal[] =>
      west({ reason, message: `may have the pod, and fails to say so: ${why}` });
    expect(told(doubt("no leader"), doubt("timed out"), { afterMs: 1, reasons: [reason] })).toBe(0);
    expect(told(doubt("no leader"), doubt("timed out"), { afterMs: 60_000, reasons: [reason] })).toBe(1);
  });

  test("is not told that a member has failed to answer once", () => {
    const afterMs = 3_600_000;
    const faltering = [member("west", { faltering: true })];
    expect(told([full], [lost], { afterMs, members: faltering })).toBe(0);
    expect(told([full], [lost], { afterMs, members: [member("west")] })).toBe(1);
    expect(told([east, full], [lost], { afterMs, members: faltering })).toBe(1);
  });

  test("is told a held-back message when the minute is over", () => {
    const proxy = proxyPod();
    const west = member("west");
    const closed = { ...west, candidate: { ...west.candidate, closed: notAnswering("reset") } };
    const observed = world(proxy, [closed], {
      memory: memory({ reported: { ...because("NotPlaced", [full]), at: now } }),
    });
    expect(decide(observed, now + 1)).toMatchObject({ actions: [], requeueAt: now + 60_000 });
    expect(decide(observed, now + 60_000).actions).toMatchObject([
      { type: "report", message: "west: its API server does not answer: reset" },
    ]);
  });
});

describe("a pod that has waited for long", () => {
  const excluded = { excludes: () => "not named by legation.dev/clusters" };
  const message = "not named by legation.dev/clusters";
  const why = because("NotPlaced", [{ cluster: "west", reason: "NotSelected", message }]);
  const waiting = (uid: string) => {
    const proxy = proxyPod({ uid });
    return world(proxy, [member("west")], { memory: memory({ reported: { ...why, at: now } }), ...excluded });
  };

  test("gets the same message again, in an event alone, before the last one expires", () => {
    const uid = "7bd5d1b8-35b4-42d5-9e04-5ae6e7bc6d5a";
    const { requeueAt = 0 } = decide(waiting(uid), now + 60_000);
    expect(requeueAt).toBeGreaterThanOrEqual(now + 50 * 60_000);
    expect(requeueAt).toBeLessThan(now + 60 * 60_000);
    expect(decide(waiting(uid), requeueAt - 1).actions).toEqual([]);
    expect(decide(waiting(uid), requeueAt).actions).toEqual([{ type: "report", proxyUid: uid, ...why, again: true }]);
  });

  test("gets it at another time than other pods that wait for as long", () => {
    const uids = ["00000000", "0000ffff", "12345678", "fedcba98"].map(
      (start) => `${start}-35b4-42d5-9e04-5ae6e7bc6d5a`,
    );
    const times = uids.map((uid) => decide(waiting(uid), now + 60_000).requeueAt);
    expect(new Set(times).size).toBe(uids.length);
  });
});

describe("a member counts as faltering", () => {
  const sound = { probed: { reachable: true }, reachable: true, read: true, nodesRead: true, unreadable: {} };
  test.each([
    ["is sound", {}, false],
    ["has failed a probe", { probed: { reachable: true, message: "reset" } }, true],
    ["has lost its watch", { reachable: false }, true],
    ["is being read", { reachable: false, read: false }, true],
    ["is lost", { probed: { reachable: false, message: "reset" }, reachable: false }, false],
    ["cannot be read", { reachable: false, unreadable: { pods: "its pods cannot be read: reset" } }, false],
    ["has nodes that cannot be read", { nodesRead: false, unreadable: { nodes: "no" } }, false],
  ])("if it %s", (_case, parts, isSo) => {
    expect(isFaltering({ ...sound, ...parts })).toBe(isSo);
  });
});

/** Counts the reports with this reason. */
function reports(view: View, why: WaitReason, at: number): number {
  return hasProxy(view) ? report(why, view, at).actions.length : 0;
}

describe("a proxy without a node", () => {
  test("gets a new message once a minute at most if only numbers differ", () => {
    const full = (left: number, resource = "cpu"): WaitReason =>
      because("NotPlaced", [{ cluster: "west", ...notEnoughLeft({ resource, wanted: 0.5, left }) }]);
    const lately = (why: WaitReason) => world(proxyPod(), [], { memory: memory({ reported: { ...why, at: now } }) });
    const told = lately(full(0.4));
    expect(reports(told, full(0.4), now + 60_000)).toBe(0);
    expect([59_999, 60_000].map((ms) => reports(told, full(0.3005), now + ms))).toEqual([0, 1]);
    expect(reports(told, full(0.4, "memory"), now)).toBe(1);
    const cut = (port: number): WaitReason => {
      const message = `fails to say so: read tcp 127.0.0.1:${port}->127.0.0.1:2379: reset`;
      return because("ClusterNotReady", [{ cluster: "west", reason: "ClusterNotReady", message }]);
    };
    expect(reports(lately(cut(43512)), cut(43513), now)).toBe(0);
    const missing = (name: string): WaitReason => ({ reason: "FailedMount", message: `configmap "${name}" not found` });
    expect(reports(lately(missing("app-1")), missing("app-2"), now)).toBe(1);
    // A message that is held back is reported once it may be.
    const west = member("west", { used: 100 });
    const waiting = world(proxyPod(), [west], {
      memory: memory({ reported: { ...full(0.4), at: now } }),
      excludes: () => "no",
    });
    expect(decide(waiting, now + 1).requeueAt).toBe(now + 60_000);
    expect(decide(waiting, now + 60_000).requeueAt).toBeGreaterThan(now + 30 * 60_000);
  });
});

describe("a pod whose reason changes in its numbers alone", () => {
  const uid = "00000000-35b4-42d5-9e04-5ae6e7bc6d5a";
  const minutes = 60_000;
  const scheduler = (nodes: number): WaitReason => {
    const message = `0/12 nodes are available: ${nodes} Insufficient cpu.`;
    const refusal = { cluster: "west", reason: "Unschedulable", message, dedupe: withoutAmounts(message) };
    return because("NotPlaced", [refusal]);
  };

  /** Lets the number move every second, and returns what is written when, in minutes. */
  function written(
    forMs: number,
    reasonAt: (second: number) => WaitReason,
  ): [number, "both" | "event" | "condition"][] {
    let at = now;
    const memories = new Memories({ now: () => at });
    const writes: [number, "both" | "event" | "condition"][] = [];
    for (; at <= now + forMs; at += 1000) {
      const view = world(proxyPod({ uid }), [], { memory: memories.of(uid) });
      if (!hasProxy(view)) break;
      for (const action of report(reasonAt((at - now) / 1000), view, at).actions) {
        if (action.type !== "report") continue;
        const { again = false, amounts = false } = action;
        writes.push([(at - now) / minutes, again ? "event" : amounts ? "condition" : "both"]);
        memories.noteReported(uid, action, at);
      }
    }
    return writes;
  }

  test("costs one write at a time, at the pace of the backoff, and one event an hour", () => {
    expect(written(60 * minutes, (second) => scheduler(second % 11))).toEqual([
      [0, "both"],
      [1, "condition"],
      [3, "condition"],
      [7, "condition"],
      [15, "condition"],
      [25, "condition"],
      [35, "condition"],
      [45, "condition"],
      [50, "event"],
      [55, "condition"],
    ]);
  });

  test("is told at once of another reason, and then begins anew", () => {
    const changes = (second: number): WaitReason =>
      second < 210
        ? scheduler(second % 11)
        : because("NotPlaced", [{ ...east, message: `${second % 11} pods`, dedupe: "pods" }]);
    expect(written(5 * minutes, changes)).toEqual([
      [0, "both"],
      [1, "condition"],
      [3, "condition"],
      [3.5, "both"],
      [4.5, "condition"],
    ]);
  });

  test("has its last number in the condition once the pace allows", () => {
    expect(written(10 * minutes, (second) => scheduler(second < 61 ? second % 11 : 7))).toEqual([
      [0, "both"],
      [1, "condition"],
      [3, "condition"],
    ]);
  });
});
