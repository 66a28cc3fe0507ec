import { expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { BEING_REMOVED } from "../../../../../src/placement/member-candidate.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { delegateOf, member, memory, type TestMember, world } from "../world.ts";

test.each([{ optedIn: false }, { invalid: "annotation legation.dev/clusters: names no cluster" }])(
  "withdraws a waiting delegate from a Cluster that is being deleted, though its placement is unknown: %j",
  (unknown) => {
    const proxy = proxyPod();
    const west = member("west", { delegate: delegateOf(proxy) });
    const decided = (closed?: typeof BEING_REMOVED): string[] => {
      const candidate = { ...west.candidate, ...(closed === undefined ? {} : { closed }) };
      return decide(world(proxy, [{ ...west, candidate }], unknown), 1_000_000).actions.map(({ type }) => type);
    };
    expect(decided(BEING_REMOVED)).toEqual(["noteRefusal", "delete"]);
    expect(decided()).toEqual(["report"]);
  },
);

test.each<[string, Partial<TestMember>, string[]]>([
  [
    "moves on at once from a member that its own mutation made overfull",
    { overfull: true },
    ["reserve", "noteRefusal", "delete"],
  ],
  ["waits for the member's scheduler where the stored requests fit the sum of its nodes", {}, ["report"]],
])("a delegate that its member made larger, and found no node for, %s", (_, facts, types) => {
  const proxy = proxyPod();
  const message = "0/3 nodes are available: 3 Insufficient cpu.";
  const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }];
  const delegate = delegateOf(proxy, { status: { phase: "Pending", conditions } });
  const mutation = {
    requests: { cpu: 20, memory: 1, pods: 1 },
    by: { cpu: "LimitRange", memory: "LimitRange" },
  } as const;
  const west = member("west", { delegate, mutation, ...facts });
  const attempts = new Map([["west", { since: 1_000_000, refusalCount: 0 }]]);
  const { actions } = decide(world(proxy, [west, member("east")], { memory: memory({ attempts }) }), 1_000_001);
  expect(actions.map(({ type }) => type)).toEqual(types);
  const words = `${message} (cpu: 20 requested there by the LimitRange of the namespace)`;
  const told = actions.find(({ type }) => type === "report" || type === "noteRefusal");
  expect(told).toMatchObject(types.length === 1 ? { message: `west: ${words}` } : { refusal: { message: words } });
});

test("reports that a proxy leaves a member whose scheduler is silent, and nothing after a message of the scheduler", () => {
  const now = 1_000_000;
  const proxy = proxyPod();
  const attempts = new Map([["west", { since: now - 30_000, refusalCount: 0 }]]);
  const decided = (status: object): unknown => {
    const delegate = delegateOf(proxy, { spec: { schedulerName: "volcano" }, status });
    const members = [member("west", { delegate }), member("east")];
    return decide(world(proxy, members, { memory: memory({ attempts }) }), now).actions;
  };
  const message = "west: its scheduler (volcano) has not answered within 30 s";
  const move = [{ type: "reserve" }, { type: "noteRefusal" }, { type: "delete" }];
  expect(decided({ phase: "Pending" })).toMatchObject([
    ...move,
    { type: "report", reason: "NotPlaced", message: expect.stringContaining(message) },
  ]);
  const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no node" }];
  expect(decided({ phase: "Pending", conditions })).toMatchObject(move);
});

test.each([
  ["two members", ["west", "east"], 30],
  ["three members", ["west", "east", "north"], 30],
  ["a long timeout for each", ["west", "east"], 900],
])("reports each silent scheduler once, and then once an hour, for a pod that goes round: %s", (_, names, seconds) => {
  const proxy = proxyPod();
  const { uid } = proxy.metadata;
  const memories = new Memories({ now: () => 0 });
  const begin = 1_000_000_000;
  const told: number[] = [0, 0, 0, 0];
  let holder: string | undefined;
  for (let now = begin; now < begin + 4 * 3_600_000; now += 1000) {
    const members = names.map((name) => ({
      ...member(name, name === holder ? { delegate: delegateOf(proxy, { status: { phase: "Pending" } }) } : {}),
      scheduleTimeoutMs: seconds * 1000,
    }));
    for (const action of decide(world(proxy, members, { memory: memories.of(uid), waitingSince: begin }), now)
      .actions) {
      if (action.type === "create") {
        holder = action.member;
        memories.noteAttempt(uid, holder, now);
      }
      if (action.type === "delete") holder = undefined;
      if (action.type === "noteRefusal") memories.noteRefusal(uid, action.refusal, action.nodesVersion, now);
      if (action.type === "report") {
        memories.noteReported(uid, action, now);
        const hour = Math.floor((now - begin) / 3_600_000);
        told[hour] = (told[hour] ?? 0) + 1;
      }
    }
  }
  // The first hour ends with the first repetition.
  expect(told[0]).toBeLessThanOrEqual(names.length + 1);
  expect(Math.max(...told.slice(1))).toBeLessThanOrEqual(seconds === 30 ? 1 : 2);
});
