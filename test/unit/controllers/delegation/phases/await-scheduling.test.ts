import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import type { Rule } from "../../../../../src/placement/candidate.ts";
import { BEING_REMOVED, CORDONED } from "../../../../../src/placement/member-candidate.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import type { Attempt } from "../../../../../src/scheduling/memory.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { names, now, unschedulable } from "../decided.ts";
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

describe("a proxy without a node", () => {
  test.each([
    ["does not know it", { schedulerName: "volcano" }, "west: its scheduler (volcano) has not answered within 30 s"],
    [
      "is not asked",
      { schedulingGates: [{ name: "k/admission" }] },
      "held back there by scheduling gates: k/admission",
    ],
    ["lacks its claims", { resourceClaims: [{ name: "gpu" }] }, "ResourceClaims and their templates are copied only"],
    [
      "lacks its PodGroup",
      { schedulingGroup: { podGroupName: "gang" } },
      "are PodGroup gang and as many pods as it asks for there?",
    ],
  ])("reports why the member's scheduler does not place it if that %s", (_case, spec, words) => {
    const proxy = proxyPod();
    const delegate = delegateOf(proxy, { spec });
    const attempts = new Map([["west", { since: now - 29_000, refusalCount: 0 }]]);
    const observed = world(proxy, [member("west", { delegate })], { memory: memory({ attempts }) });
    expect(decide(observed, now)).toMatchObject({ actions: [], outcome: "Scheduling", requeueAt: now + 1000 });
    expect(decide(observed, now + 1000).actions).toMatchObject([
      { type: "report", message: expect.stringContaining(words) },
    ]);
  });

  test("is taken back from a member when its group goes to another", () => {
    const proxy = proxyPod();
    const delegate = delegateOf(proxy);
    const members = [member("west", { delegate }), member("east")];
    const { actions } = decide(world(proxy, members, { home: "east" }), now);
    expect(actions).toMatchObject([{ type: "delete", resourceVersion: delegate.metadata.resourceVersion }]);
    expect(names(decide(world(proxy, members, { home: "west" }), now).actions)).not.toContain("delete west");
  });

  test.each([
    ["that there is no room for its gang", "NoRoomForGang", "cpu: 36 requested by the gang together, 8 left"],
    ["what the scheduler says", "Full", "a node has room for it, but not for as many pods as its gang needs"],
  ] as const)("reports %s", (_, reason, words) => {
    const proxy = proxyPod();
    const message = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled";
    const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }];
    const west = member("west", { delegate: delegateOf(proxy, { status: { phase: "Pending", conditions } }) });
    const rules = (): Rule[] => [
      { filter: () => ({ reason, message: "cpu: 36 requested by the gang together, 8 left" }) },
    ];
    expect(decide(world(proxy, [west], { rules }), now).actions).toMatchObject([
      { type: "report", message: `west: ${words}` },
    ]);
  });

  test("is taken back from a member that no longer admits its namespace, unless it has a node there", () => {
    const proxy = proxyPod();
    const notAdmitted = { reason: "NotPermitted", message: "not admitted" } as const;
    const rules = () => [{ filter: () => notAdmitted }];
    const delegate = delegateOf(proxy);
    const { actions } = decide(world(proxy, [member("west", { delegate })], { rules }), now);
    expect(names(actions)).toEqual(["report", "delete west"]);
    expect(actions[1]).toMatchObject({ resourceVersion: delegate.metadata.resourceVersion });
    const scheduled = delegateOf(proxy, { spec: { nodeName: "west-node-1" } });
    expect(names(decide(world(proxy, [member("west", { delegate: scheduled })], { rules }), now).actions)).toEqual([
      "bind west",
    ]);
  });

  describe("with a delegate that the member cannot schedule", () => {
    const proxy = proxyPod();
    const delegate = delegateOf(proxy, { status: unschedulable });
    const held = member("west", { delegate });
    const since = (ago: number): Map<string, Attempt> => new Map([["west", { since: now - ago, refusalCount: 0 }]]);

    test("stays until the member's timeout, and reports the scheduler's message", () => {
      const decision = decide(
        world(proxy, [held, member("east")], { memory: memory({ attempts: since(10_000) }) }),
        now,
      );
      expect(names(decision.actions)).toEqual(["report"]);
      expect(decision.requeueAt).toBe(now + 20_000);
    });

    test("is withdrawn after the timeout if another member has room", () => {
      const observed = world(proxy, [held, member("east")], { memory: memory({ attempts: since(30_000) }) });
      expect(names(decide(observed, now).actions)).toEqual(["reserve east", "noteRefusal", "delete west"]);
    });

    test("is not withdrawn in a newer version, which may have a node", () => {
      const observed = world(proxy, [held, member("east")], { memory: memory({ attempts: since(30_000) }) });
      expect(decide(observed, now).actions).toContainEqual({
        type: "delete",
        member: "west",
        uid: "delegate-uid",
        resourceVersion: "1",
      });
    });

    test("gets the whole timeout from when the member can be reached again", () => {
      const back = member("west", { delegate, reachableSince: now - 5_000 });
      const observed = world(proxy, [back, member("east")], { memory: memory({ attempts: since(60_000) }) });
      const decision = decide(observed, now);
      expect(names(decision.actions)).toEqual(["report"]);
      expect(decision.requeueAt).toBe(now + 25_000);
    });

    test("is withdrawn at once if it only waited there because no member had room", () => {
      const attempts = new Map([["west", { since: now, refusalCount: 0, parked: true }]]);
      const full = member("west", { delegate, used: 101 });
      const withRoom = world(proxy, [full, member("east", { used: 99 })], { memory: memory({ attempts }) });
      expect(names(decide(withRoom, now).actions)).toEqual(["reserve east", "noteRefusal", "delete west"]);
      const without = world(proxy, [full, member("east", { used: 100 })], { memory: memory({ attempts }) });
      expect(names(decide(without, now).actions)).toEqual(["report"]);
    });

    test("stays if no other member has room", () => {
      const observed = world(proxy, [held, member("east", { used: 100 })], {
        memory: memory({ attempts: since(99_000) }),
      });
      expect(names(decide(observed, now).actions)).toEqual(["report"]);
    });
  });

  describe("with an unknown placement", () => {
    const delegate = delegateOf(proxyPod(), { status: unschedulable });
    const attempts = new Map([["west", { since: now - 60_000, refusalCount: 0 }]]);

    test.each([{ optedIn: false }, { invalid: "annotation legation.dev/clusters: names no cluster" }])(
      "stays where it waits for a node: %j",
      (parts) => {
        const members = [member("west", { delegate }), member("east")];
        const observed = world(proxyPod(), members, { ...parts, memory: memory({ attempts }) });
        expect(names(decide(observed, now).actions)).toEqual(["report"]);
        const known = world(proxyPod(), members, { memory: memory({ attempts }) });
        expect(names(decide(known, now).actions)).toContain("reserve east");
      },
    );
  });

  test("is left for a while to a scheduler that makes room for it", () => {
    const nominated = delegateOf(proxyPod(), { status: { ...unschedulable, nominatedNodeName: "west-node-1" } });
    const attempts = new Map([["west", { since: now - 60_000, refusalCount: 0, parked: true }]]);
    const members = [member("west", { delegate: nominated }), member("east")];
    const observed = world(proxyPod(), members, { memory: memory({ attempts }) });
    expect(names(decide(observed, now).actions)).toEqual(["report"]);
    expect(names(decide(observed, now + 10 * 60_000).actions)).toContain("reserve east");
  });

  test("is withdrawn from a member whose Cluster is being deleted", () => {
    const proxy = proxyPod();
    const leaving = { ...member("west").candidate, closed: BEING_REMOVED };
    const west = member("west", { delegate: delegateOf(proxy), candidate: leaving });
    const { actions } = decide(world(proxy, [west]), now);
    expect(actions).toMatchObject([
      { type: "noteRefusal", refusal: { cluster: "west", reason: "ClusterBeingRemoved" } },
      { type: "delete", member: "west", uid: "delegate-uid", resourceVersion: "1" },
    ]);
  });

  test("is withdrawn from a member whose node is cordoned or has a taint that it does not tolerate", () => {
    const proxy = proxyPod();
    const taint = { key: "gone", value: "soon", effect: "NoSchedule" };
    // The pod's own requests may be what makes the member full for it.
    const limited: Rule = { filter: () => ({ reason: "OverLimit", message: "its limit of cpu" }) };
    const west = member("west", { delegate: delegateOf(proxy) });
    const cordoned = { ...west, candidate: { ...west.candidate, closed: CORDONED } };
    const withdrawal = { type: "delete", member: "west", uid: "delegate-uid", resourceVersion: "1" };
    for (const observed of [
      world(proxy, [cordoned]),
      world(proxy, [{ ...west, candidate: { ...west.candidate, taints: [taint] } }], { rules: () => [limited] }),
    ]) {
      const { actions, outcome } = decide(observed, now);
      expect(actions).toMatchObject([{ type: "report", reason: "NotPlaced" }, withdrawal]);
      expect(outcome).toBe("Withdrawing");
    }
    // The member's scheduler was faster, as the host's own is at times.
    const scheduled = { ...cordoned, delegate: delegateOf(proxy, { spec: { nodeName: "n" } }) };
    expect(decide(world(proxy, [scheduled]), now).outcome).toBe("Binding");
  });
});

describe("a bound proxy", () => {
  test("is forwarded to a delegate that waits for a node: a toleration may be all that it lacks", () => {
    const first = proxyPod();
    const delegate = delegateOf(first, { spec: first.spec ?? {}, status: { phase: "Pending" } });
    const spec = { tolerations: [{ key: "example.com/pool", operator: "Exists" }] };
    const { actions, outcome } = decide(world(proxyPod({ spec }), [member("west", { delegate })]), now);
    expect(outcome).toBe("Scheduling");
    expect(actions).toMatchObject([{ type: "forward", member: "west", patch: { body: { spec } } }]);
  });
});
