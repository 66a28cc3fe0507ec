import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { because } from "../../../../../src/placement/needs.ts";
import type { Attempt } from "../../../../../src/scheduling/memory.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { names, now, refused } from "../decided.ts";
import { delegateOf, member, memory, type WorldParts, world } from "../world.ts";

test("is not placed before its workload is known, and says so after a while", () => {
  const view = world(proxyPod(), [member("west")], { unseen: "Deployment/web", waitingSince: now });
  expect(decide(view, now)).toMatchObject({ outcome: "Waiting", actions: [], requeueAt: now + 5000 });
  const message = "Deployment/web, whose annotations say where the pod goes, has not been read yet";
  expect(decide(view, now + 5000).actions).toMatchObject([{ type: "report", reason: "WorkloadUnread", message }]);
});

describe("the message of a proxy that no member takes", () => {
  const refusal = (message: string) => ({ cluster: "west", reason: "RefusedByMember", message }) as const;
  const attempted = (until: number): Pick<WorldParts, "memory"> => {
    const attempt = { since: 0, refusalCount: 1, refusal: refusal("quota of its own"), until, nodesVersion: 1 };
    return { memory: memory({ attempts: new Map([["west", attempt]]) }) };
  };
  const refusedBefore = () => ({ refusal: refusal("quota of another"), until: now + 5000 });
  const excludes = () => "not named";
  test.each<[string, WorldParts, string]>([
    ["gives the member's own refusal", attempted(now + 1), "quota of its own"],
    [
      "gives the member's own refusal before that of another pod",
      { ...attempted(now + 1), refusedBefore },
      "quota of its own",
    ],
    ["gives the refusal of another pod of its shape", { refusedBefore }, "quota of another"],
    ["gives the refusing rule before the refusal of another pod", { refusedBefore, excludes }, "not named"],
    ["gives the refusing rule if the member's refusal is old", { ...attempted(now), excludes }, "not named"],
  ])("%s", (_, parts, message) => {
    expect(decide(world(proxyPod(), [member("west")], parts), now).actions).toMatchObject([
      { type: "report", message: `west: ${message}` },
    ]);
  });
});

test("reserves room for the pod as its overrides make it in that member", () => {
  const west = member("west");
  const late = { ...west, candidate: { ...west.candidate, overdue: true } };
  const parts = {
    waitingSince: now,
    rules: () => [{ awaits: true, score: ({ name }: { readonly name: string }) => (name === "west" ? 1 : 0) }],
    requestsIn: () => ({ cpu: 3, pods: 1 }),
  };
  expect(decide(world(proxyPod(), [late, member("east")], parts), now).actions).toEqual([
    { type: "reserve", member: "west", proxyUid: "uid-1", requests: { cpu: 3, pods: 1 } },
  ]);
});

describe("a proxy without a node", () => {
  test("gets a delegate in the least loaded member", () => {
    const { actions, outcome } = decide(world(proxyPod(), [member("west", { used: 5 }), member("east")]), now);
    expect(names(actions)).toEqual(["create east"]);
    expect(outcome).toBe("Placing");
  });

  test("reports nothing about members that are being read during the first seconds", () => {
    const west = member("west");
    const closed = { reason: "ClusterNotReady", message: "its pods and nodes are still being read" } as const;
    const reading = { ...west, read: false, faltering: true, candidate: { ...west.candidate, closed } };
    const inherited = { memory: memory({ fresh: false }), waitingSince: now };
    for (const parts of [{ waitingSince: now }, inherited]) {
      const observed = world(proxyPod(), [reading], parts);
      expect(decide(observed, now + 4999)).toMatchObject({ actions: [], requeueAt: now + 5000 });
      expect(names(decide(observed, now + 5000).actions)).toEqual(["report"]);
    }
    // A known reason is reported at once.
    const lost = { ...reading, reachable: false, faltering: false };
    for (const parts of [{ waitingSince: now }, inherited]) {
      expect(names(decide(world(proxyPod(), [lost], parts), now).actions)).toEqual(["report"]);
    }
  });

  test("waits while a scheduling gate holds it", () => {
    const gated = proxyPod({ spec: { schedulingGates: [{ name: "kueue.x-k8s.io/admission" }] } });
    expect(decide(world(gated, [member("west")]), now)).toEqual({ actions: [], outcome: "Gated" });
  });

  test("reports the reason of every member when none takes it", () => {
    const closed = { reason: "ClusterNotReady", message: "its API server does not answer" } as const;
    const west = member("west");
    const candidate = { ...west.candidate, closed };
    const east = member("east");
    const excludes = ({ name }: { name: string }): string | undefined => (name === "east" ? "not named" : undefined);
    const { actions } = decide(world(proxyPod(), [{ ...west, candidate }, east], { excludes }), now);
    expect(actions).toEqual([
      {
        type: "report",
        proxyUid: "uid-1",
        reason: "NotPlaced",
        message: "east: not named; west: its API server does not answer",
        refusals: [
          { cluster: "west", ...closed },
          { cluster: "east", reason: "NotSelected", message: "not named" },
        ],
      },
    ]);
  });

  test("reports nothing for some seconds while it follows the first of its group", () => {
    const proxy = proxyPod({ metadata: { creationTimestamp: new Date(now - 1000).toISOString() } });
    const rules = () => [{ filter: () => ({ reason: "OtherGroup", message: "goes where another goes" }) as const }];
    const observed = world(proxy, [member("west")], { follows: true, rules });
    expect(decide(observed, now)).toEqual({ actions: [], outcome: "Waiting", requeueAt: now + 4000 });
    expect(names(decide(observed, now + 4000).actions)).toEqual(["report"]);
  });

  test("enters no member before its gang has left the others, and keeps its room there meanwhile", () => {
    const gang = { text: "the pods of PodGroup gang", heldIn: ["west"] };
    const proxy = proxyPod({ metadata: { creationTimestamp: new Date(now).toISOString() } });
    const west = member("west", { used: 100 });
    const moving = decide(world(proxy, [west, member("east")], { gang }), now);
    expect(names(moving.actions)).toEqual(["reserve east"]);
    const reserved = memory({ reserved: "east" });
    expect(decide(world(proxy, [west, member("east")], { gang, memory: reserved }), now).actions).toEqual([]);
    const full = decide(
      world(proxy, [west, member("east", { used: 100 })], { gang: { ...gang, heldIn: ["north"] } }),
      now,
    );
    expect(names(full.actions)).toEqual(["gather east"]);
    const there = decide(world(proxy, [member("west")], { gang }), now);
    expect(names(there.actions)).toEqual(["create west"]);
    const late = decide(world(proxy, [west, member("east")], { gang, memory: reserved }), now + 5000);
    expect(late.actions).toMatchObject([
      { type: "report", message: "east: the pods of PodGroup gang have to leave west first" },
    ]);
  });

  test("says so while its gang cannot be told to leave a member that does not answer", () => {
    const gang = { text: "the pods of PodGroup gang", heldIn: ["west"] };
    const closed = { reason: "ClusterNotReady", message: "no answer" } as const;
    const lost = member("west", { reachable: false, candidate: { ...member("west").candidate, closed } });
    const { actions } = decide(world(proxyPod(), [lost, member("east")], { gang }), now);
    expect(actions).toMatchObject([
      { type: "reserve", member: "east" },
      { type: "report", message: "east: the pods of PodGroup gang have to leave west first" },
    ]);
  });

  test("hands the lead of its gang over if it finds no member", () => {
    const excludes = () => "not named";
    const gang = { text: "the pods of PodGroup gang", heldIn: ["west"], leads: true } as const;
    const decision = decide(world(proxyPod(), [member("west")], { excludes, gang }), now);
    expect(names(decision.actions)).toEqual(["report", "handOver"]);
    const { leads: _, ...led } = gang;
    expect(names(decide(world(proxyPod(), [member("west")], { excludes, gang: led }), now).actions)).toEqual([
      "report",
    ]);
  });

  test("skips a member that has just refused a pod of its shape, and waits there if it is the only one", () => {
    const refusal = { cluster: "west", reason: "Unschedulable", message: "no node fits" } as const;
    const refusedBefore = (name: string) => (name === "west" ? { refusal, until: now + 5000 } : undefined);
    const members = [member("west"), member("east", { used: 50 })];
    expect(names(decide(world(proxyPod(), members, { refusedBefore }), now).actions)).toEqual(["create east"]);
    const alone = decide(world(proxyPod(), [member("west")], { refusedBefore }), now);
    expect(alone.actions).toMatchObject([{ type: "create", member: "west", parked: true }]);
  });

  test("is not sent where the API server has just refused a pod of its shape, and reports that", () => {
    const refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" } as const;
    const refusedBefore = () => ({ refusal, until: now + 5000 });
    const decision = decide(world(proxyPod(), [member("west")], { refusedBefore }), now);
    expect(decision).toMatchObject({
      actions: [{ type: "report", message: "west: exceeded quota" }],
      requeueAt: now + 5000,
    });
  });

  test("reports which of the named members do not exist", () => {
    const observed = world(proxyPod(), [member("west")], { named: ["wset"], excludes: () => "not named" });
    expect(decide(observed, now).actions).toMatchObject([
      { message: "west: not named; wset: no Cluster of that name has joined" },
    ]);
  });

  test("reports the same reason once", () => {
    const observed = world(proxyPod(), [], {
      memory: memory({ reported: because("NotPlaced", []) }),
    });
    expect(decide(observed, now).actions).toEqual([]);
  });

  test("waits where it has the best chance when no member has room", () => {
    const west = member("west", { used: 102 });
    const east = member("east", { used: 101 });
    expect(decide(world(proxyPod(), [west, east]), now).actions).toEqual([
      expect.objectContaining({ type: "create", member: "east", parked: true }),
    ]);
  });

  describe("with a delegate that the member cannot schedule", () => {
    const proxy = proxyPod();

    test("goes to the member where its room is reserved, which looks full for that reason", () => {
      const attempts = new Map([["west", refused("Unschedulable")]]);
      const members = [member("west", { used: 101 }), member("east", { used: 100 })];
      const { actions } = decide(world(proxy, members, { memory: memory({ attempts, reserved: "east" }) }), now);
      expect(actions).toEqual([expect.objectContaining({ type: "create", member: "east" })]);
      expect(actions[0]).not.toHaveProperty("parked");
    });

    test("goes to the next member once it is gone", () => {
      const attempts = new Map([["west", refused("Unschedulable")]]);
      const observed = world(proxy, [member("west"), member("east", { used: 50 })], { memory: memory({ attempts }) });
      expect(names(decide(observed, now).actions)).toEqual(["create east"]);
    });

    test.each<[string, Attempt, string]>([
      ["goes back when its nodes changed", refused("Unschedulable", { nodesVersion: 0 }), "create west"],
      ["goes back after the backoff", refused("RefusedByMember", { until: now }), "create west"],
      ["does not go back for nodes alone", refused("RefusedByMember", { nodesVersion: 0 }), "report"],
    ])("%s after a member refused it", (_, attempt, action) => {
      const attempts = new Map([["west", attempt]]);
      expect(names(decide(world(proxy, [member("west")], { memory: memory({ attempts }) }), now).actions)).toEqual([
        action,
      ]);
    });

    test("is not sent again where the API server has just refused it", () => {
      const attempts = new Map([["west", refused("RefusedByMember")]]);
      const decision = decide(world(proxy, [member("west")], { memory: memory({ attempts }) }), now);
      expect(decision.actions).toEqual([expect.objectContaining({ type: "report", message: "west: no" })]);
      expect(decision.requeueAt).toBe(now + 60_000);
    });
  });

  describe("with an unknown placement", () => {
    test("waits if its namespace is no longer opted in, and reports that if it lasts", () => {
      const waitingSince = now - 4000;
      const observed = world(proxyPod(), [member("west")], { optedIn: false, waitingSince });
      expect(decide(observed, now)).toEqual({ actions: [], outcome: "Waiting", requeueAt: now + 1000 });
      expect(decide(observed, now + 1000).actions).toMatchObject([
        {
          type: "report",
          reason: "NotOptedIn",
          message: expect.stringContaining("namespace team has no label legation.dev/delegation any more"),
        },
      ]);
    });
  });

  describe("with an earlier proxy's delegate under its name in the best member", () => {
    const proxy = proxyPod({ metadata: { creationTimestamp: new Date(now).toISOString() } });
    const earlier = delegateOf(proxyPod({ uid: "uid-0" }));
    const west = member("west", { delegate: earlier });
    const sweep = { type: "sweep", member: "west", uid: "delegate-uid", proxyUid: "uid-0" };

    test("waits for it to go, and sweeps it, but not for long", () => {
      const east = member("east", { used: 50 });
      const { actions, requeueAt } = decide(world(proxy, [west, east]), now);
      expect({ actions, requeueAt }).toEqual({ actions: [sweep], requeueAt: now + 10_000 });
      const later = decide(world(proxy, [west, east]), now + 10_000);
      expect(later.actions).toMatchObject([{ type: "create", member: "east" }, sweep]);
    });

    test("reports what it waits for if no other member takes it", () => {
      const { actions } = decide(world(proxy, [west]), now + 10_000);
      const message = "west: still has the delegate of an earlier pod of that name";
      expect(actions).toMatchObject([{ type: "report", reason: "NotPlaced", message }, sweep]);
    });
  });
});
