import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../../../src/api/kubernetes.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import type { Action } from "../../../../../src/controllers/delegation/decision/decision.ts";
import type { Attempt } from "../../../../../src/scheduling/memory.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { delegateOf, member, memory, preemptibleIn, type TestMember, type WorldParts, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const unschedulable = {
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes fit" }],
};

function names(actions: readonly Action[]): string[] {
  return actions.map((action) => ("member" in action ? `${action.type} ${action.member}` : action.type));
}

const refused = { cluster: "east", reason: "Unschedulable", message: "no victims" } as const;

/** Returns a refusal by east with this backoff. */
function refusal(ms: number): Attempt {
  return { since: 0, refusalCount: 1, refusal: refused, until: now + ms, nodesVersion: 1 };
}

describe("a pod that may preempt others, whose member finds no node for it", () => {
  const important = proxyPod({ spec: { priority: 1000 } });
  const waits = delegateOf(important, { status: unschedulable });
  /** Room for one pod with a priority above 0. */
  const withVictims = (name: string, used = 100) => preemptibleIn(member(name, { used }), { cpu: 2, pods: 2 });
  const full = member("west", { delegate: waits, used: 101 });
  const parked = (ago: number, east?: Attempt): Pick<WorldParts, "memory"> => {
    const west: Attempt = { since: now - ago, refusalCount: 0, parked: true };
    const attempts = new Map([["west", west], ...(east === undefined ? [] : [["east", east] as const])]);
    return { memory: memory({ attempts }) };
  };

  test("goes to a full member with such pods if its own has named no node in time", () => {
    const observed = world(important, [full, withVictims("east")], parked(30_000));
    expect(names(decide(observed, now).actions)).toEqual(["noteRefusal", "delete west"]);
    const early = decide(world(important, [full, withVictims("east")], parked(29_999)), now);
    expect([names(early.actions), early.requeueAt]).toEqual([["report"], now + 1]);
  });

  test("stays while its member's scheduler makes room", () => {
    const nominated = delegateOf(important, { status: { ...unschedulable, nominatedNodeName: "node-1" } });
    const makesRoom = member("west", { delegate: nominated, used: 101 });
    const observed = world(important, [makesRoom, withVictims("east")], parked(60_000));
    expect(names(decide(observed, now).actions)).toEqual(["report"]);
  });

  test.each<[string, Stored<Pod>, TestMember]>([
    ["they have as much priority", proxyPod({ spec: { priority: 0 } }), withVictims("east")],
    ["it preempts nobody", proxyPod({ spec: { priority: 1000, preemptionPolicy: "Never" } }), withVictims("east")],
    ["they leave too little", important, withVictims("east", 102)],
  ])("stays if %s", (_why, proxy, east) => {
    const observed = world(proxy, [member("west", { delegate: waits, used: 101 }), east], parked(30_000));
    expect(names(decide(observed, now).actions)).toEqual(["report"]);
  });

  test("stays if the other member has just refused a pod of its shape", () => {
    const refusedBefore = (name: string) => (name === "east" ? { refusal: refused, until: now + 5_000 } : undefined);
    const observed = world(important, [full, withVictims("east")], { ...parked(30_000), refusedBefore });
    expect(names(decide(observed, now).actions)).toEqual(["report"]);
  });

  test("goes back only after the other member's backoff, whatever its nodes do", () => {
    const before: Attempt = { ...refusal(5_000), nodesVersion: 0 };
    const members = [full, withVictims("east")];
    const decision = decide(world(important, members, parked(30_000, before)), now);
    expect([names(decision.actions), decision.requeueAt]).toEqual([["report"], now + 5_000]);
    const later = decide(world(important, members, parked(35_000, { ...before, until: now })), now);
    expect(names(later.actions)).toEqual(["noteRefusal", "delete west"]);
  });

  test("is parked there, so that it goes on as soon as any member has room", () => {
    const attempts = new Map([["west", { ...refusal(60_000), refusal: { ...refused, cluster: "west" } }]]);
    const members = [member("west", { used: 101 }), withVictims("east")];
    const decision = decide(world(important, members, { memory: memory({ attempts }) }), now);
    expect(decision.actions).toMatchObject([{ type: "create", member: "east", parked: true }]);
  });

  test("waits first where it may preempt, and elsewhere after a refusal", () => {
    const members = [member("west", { used: 100 }), withVictims("east", 101)];
    const first = decide(world(important, members), now);
    expect(first.actions).toMatchObject([{ type: "create", member: "east", parked: true }]);
    const attempts = new Map([["east", refusal(60_000)]]);
    const next = decide(world(important, members, { memory: memory({ attempts }) }), now);
    expect(next.actions).toMatchObject([{ type: "create", member: "west", parked: true }]);
  });
});
