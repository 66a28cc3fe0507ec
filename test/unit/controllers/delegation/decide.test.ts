import { describe, expect, test } from "vitest";
import { DELEGATE_FINALIZER } from "../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/delegation/decide.ts";
import type { Action } from "../../../../src/controllers/delegation/decision/decision.ts";
import { report } from "../../../../src/controllers/delegation/decision/report.ts";
import { hasProxy, type View } from "../../../../src/controllers/delegation/decision/view.ts";
import type { Rule } from "../../../../src/placement/candidate.ts";
import { BEING_REMOVED, CORDONED, NO_VIRTUAL_NODE } from "../../../../src/placement/member-candidate.ts";
import { because, type WaitReason } from "../../../../src/placement/needs.ts";
import { notEnoughLeft } from "../../../../src/placement/refusal-messages.ts";
import type { Attempt } from "../../../../src/scheduling/memory.ts";
import { endedStatus, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { boundProxy, delegateOf, gone, member, memory, world } from "./world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const deleting = { deletionTimestamp: "2026-02-03T04:05:00Z" };
const unschedulable = {
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes fit" }],
};

function names(actions: readonly Action[]): string[] {
  return actions.map((action) => ("member" in action ? `${action.type} ${action.member}` : action.type));
}

/** Counts the reports with this reason. */
function reports(view: View, why: WaitReason, at: number): number {
  return hasProxy(view) ? report(why, view, at).actions.length : 0;
}

function refused(reason: "Unschedulable" | "RefusedByMember", parts: Partial<Attempt> = {}): Attempt {
  const refusal = { cluster: "west", reason, message: "no" };
  return { since: now - 60_000, refusal, until: now + 60_000, nodesVersion: 1, refusalCount: 1, ...parts };
}

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

  test("is bound to its delegate's node, and does not run again, if the delegate ran and went before the host saw it", () => {
    const proxy = proxyPod();
    const departed = delegateOf(proxy, { spec: { nodeName: "west-node-1" }, status: runningStatus() });
    const bind = { type: "bind", member: "west", delegateUid: "delegate-uid", memberNode: "west-node-1" };
    expect(decide(world(proxy, [member("west", { departed }), member("east")]), now).actions).toMatchObject([bind]);
    const idle = delegateOf(proxy, { spec: { nodeName: "west-node-1" } });
    expect(names(decide(world(proxy, [member("west", { departed: idle })]), now).actions)).toEqual(["create west"]);
  });

  test.each([
    ["does not know it", { schedulerName: "volcano" }, "west: its scheduler (volcano) has not answered within 30 s"],
    [
      "is not asked",
      { schedulingGates: [{ name: "k/admission" }] },
      "held back there by scheduling gates: k/admission",
    ],
    ["lacks its claims", { resourceClaims: [{ name: "gpu" }] }, "ResourceClaims and their templates are not copied"],
    ["lacks its PodGroup", { schedulingGroup: { podGroupName: "gang" } }, "PodGroup gang is not copied: is it there"],
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

  test("waits while a scheduling gate holds it", () => {
    const gated = proxyPod({ spec: { schedulingGates: [{ name: "kueue.x-k8s.io/admission" }] } });
    expect(decide(world(gated, [member("west")]), now)).toEqual({ actions: [], outcome: "Gated" });
  });

  test("is bound once its delegate is scheduled, with the delegate's uid and node", () => {
    const proxy = proxyPod();
    const delegate = delegateOf(proxy, { spec: { nodeName: "west-node-1" } });
    expect(decide(world(proxy, [member("west", { delegate }), member("east")]), now).actions).toEqual([
      { type: "bind", member: "west", proxyUid: "uid-1", delegateUid: "delegate-uid", memberNode: "west-node-1" },
    ]);
  });

  test("is bound with an event that names the refusal of another member, unless the author knows it", () => {
    const proxy = proxyPod();
    const members = [
      member("west"),
      member("east", { delegate: delegateOf(proxy, { spec: { nodeName: "east-node-1" } }) }),
    ];
    const attempts = new Map([["west", refused("RefusedByMember")]]);
    const { actions } = decide(world(proxy, members, { memory: memory({ attempts }) }), now);
    expect(names(actions)).toEqual(["bind east", "announce"]);
    expect(actions[1]).toMatchObject({ message: "west: no; placed in east" });
    const reported = because("NotPlaced", [{ cluster: "west", reason: "RefusedByMember", message: "no" }]);
    expect(names(decide(world(proxy, members, { memory: memory({ attempts, reported }) }), now).actions)).toEqual([
      "bind east",
    ]);
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

  test("reports nothing for some seconds while it follows the first of its group", () => {
    const proxy = proxyPod({ metadata: { creationTimestamp: new Date(now - 1000).toISOString() } });
    const rules = () => [{ filter: () => ({ reason: "OtherGroup", message: "goes where another goes" }) as const }];
    const observed = world(proxy, [member("west")], { follows: true, rules });
    expect(decide(observed, now)).toEqual({ actions: [], outcome: "Waiting", requeueAt: now + 4000 });
    expect(names(decide(observed, now + 4000).actions)).toEqual(["report"]);
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

    test("goes to the member where its room is reserved, which looks full for that reason", () => {
      const attempts = new Map([["west", refused("Unschedulable")]]);
      const members = [member("west", { used: 101 }), member("east", { used: 100 })];
      const { actions } = decide(world(proxy, members, { memory: memory({ attempts, reserved: "east" }) }), now);
      expect(actions).toEqual([expect.objectContaining({ type: "create", member: "east" })]);
      expect(actions[0]).not.toHaveProperty("parked");
    });

    test("stays if no other member has room", () => {
      const observed = world(proxy, [held, member("east", { used: 100 })], {
        memory: memory({ attempts: since(99_000) }),
      });
      expect(names(decide(observed, now).actions)).toEqual(["report"]);
    });

    test("is not created elsewhere before it is seen to be gone", () => {
      const going = delegateOf(proxy, { status: unschedulable, metadata: deleting });
      const observed = world(proxy, [member("west", { delegate: going }), member("east")]);
      expect(decide(observed, now)).toEqual({ actions: [], outcome: "Withdrawing" });
    });

    test("is bound to it, and ends with it, if it has a node and is being deleted", () => {
      const going = delegateOf(proxy, { spec: { nodeName: "node-1" }, status: runningStatus(), metadata: deleting });
      const observed = world(proxy, [member("west", { delegate: going }), member("east")]);
      expect(names(decide(observed, now).actions)).toEqual(["bind west"]);
      const ended = delegateOf(proxy, { status: { phase: "Failed", reason: "Evicted" }, metadata: deleting });
      const over = world(proxy, [member("west", { delegate: ended }), member("east")]);
      expect(names(decide(over, now).actions)).toEqual(["bind west"]);
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

  describe("with a delegate that a member may have and does not show", () => {
    test("is created in that member again, and nowhere else, after a lost response", () => {
      const observed = world(proxyPod(), [member("west", { used: 90 }), member("east")], {
        memory: memory({ uncertain: "west" }),
      });
      expect(names(decide(observed, now).actions)).toEqual(["create west"]);
    });

    test("reports the failing creates, and is created elsewhere once the member is known not to have it", () => {
      const uncertainCreate = { since: now - 30_000, lastAt: now, message: "etcdserver: request timed out" };
      const observed = world(proxyPod(), [member("west"), member("east", { used: 90 })], {
        memory: memory({ uncertain: "west", uncertainCreate }),
      });
      const early = decide(observed, now - 26_000);
      expect(names(early.actions)).toEqual(["create west"]);
      const told = decide(observed, now - 1);
      expect(names(told.actions)).toEqual(["report", "create west"]);
      const message = "west: may have the pod, and fails to say so: etcdserver: request timed out";
      expect(told.actions[0]).toMatchObject({ reason: "ClusterNotReady", message });
      const waits = decide(observed, now);
      expect(names(waits.actions)).toEqual(["report"]);
      expect(waits.requeueAt).toBe(now + 60_000);
      const known = decide(observed, now + 60_000);
      expect(names(known.actions)).toEqual(["report", "confirmCreated west"]);
      expect(known.actions[1]).toMatchObject({ refusal: { cluster: "west", message: uncertainCreate.message } });

      const alone = world(proxyPod(), [member("west")], { memory: memory({ uncertain: "west", uncertainCreate }) });
      expect(names(decide(alone, now + 60_000).actions)).toEqual(["report", "create west"]);
    });

    test("waits after a lost response of a member that has gone silent", () => {
      const west = member("west", { reachable: false });
      const observed = world(proxyPod(), [west, member("east")], { memory: memory({ uncertain: "west" }) });
      expect(names(decide(observed, now).actions)).toEqual(["report"]);
    });

    test("waits for every member that might have it after a change of leader", () => {
      const west = member("west", { reachable: false, read: false });
      const inherited = world(proxyPod(), [west, member("east")], { memory: memory({ fresh: false }) });
      expect(names(decide(inherited, now).actions)).toEqual(["report"]);
      const fresh = world(proxyPod(), [west, member("east")]);
      expect(names(decide(fresh, now).actions)).toEqual(["create east"]);
    });

    test("waits for a silent member that has it", () => {
      const proxy = proxyPod();
      const west = member("west", { reachable: false, delegate: delegateOf(proxy) });
      expect(decide(world(proxy, [west, member("east")]), now).outcome).toBe("Unreachable");
    });
  });

  describe("with an unknown placement", () => {
    const delegate = delegateOf(proxyPod(), { status: unschedulable });
    const attempts = new Map([["west", { since: now - 60_000, refusalCount: 0 }]]);

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

    test.each([{ optedIn: false }, { invalid: "annotation legation.dev/clusters: names no cluster" }])(
      "stays where it waits for a node: %j",
      (parts) => {
        const members = [member("west", { delegate }), member("east")];
        const observed = world(proxyPod(), members, { ...parts, memory: memory({ attempts }) });
        expect(names(decide(observed, now).actions)).toEqual(["report"]);
        expect(names(decide({ ...observed, optedIn: true, invalid: undefined } as never, now).actions)).toContain(
          "reserve east",
        );
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

  test("never keeps two delegates: the scheduled one stays", () => {
    const proxy = proxyPod();
    const west = member("west", { delegate: delegateOf(proxy) });
    const east = member("east", { delegate: delegateOf(proxy, { uid: "two", spec: { nodeName: "n" } }) });
    expect(decide(world(proxy, [west, east]), now).actions).toEqual([
      { type: "delete", member: "west", uid: "delegate-uid", resourceVersion: "1" },
    ]);
  });

  test("is not bound to a virtual node that the host lacks, and reports that", () => {
    const proxy = proxyPod();
    const delegate = delegateOf(proxy, { spec: { nodeName: "n" } });
    const west = member("west", { delegate });
    const without = { ...west, candidate: { ...west.candidate, closed: NO_VIRTUAL_NODE } };
    expect(decide(world(proxy, [without]), now)).toMatchObject({ actions: [{ type: "report" }], outcome: "Waiting" });
    expect(decide(world(proxy, [west]), now).outcome).toBe("Binding");
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

test("does not wait for a member that claims a delegate of the proxy's name", () => {
  const proxy = boundProxy();
  const forged = delegateOf(proxyPod({ uid: "uid-0" }), { uid: "forged" });
  const members = [
    member("west", { delegate: delegateOf(proxy, { status: runningStatus() }) }),
    member("east", { delegate: forged }),
  ];
  const { actions, requeueAt } = decide(world(proxy, members), now);
  expect(actions.map(({ type }) => type)).toEqual(["status", "sweep"]);
  expect(requeueAt).toBe(now + 10_000);
});

describe("a bound proxy", () => {
  test("gets its delegate's status in one write", () => {
    const proxy = boundProxy();
    const delegate = delegateOf(proxy, { spec: { nodeName: "n" }, status: runningStatus() });
    const { actions, requeueAt } = decide(world(proxy, [member("west", { delegate })]), now);
    expect(names(actions)).toEqual(["status"]);
    // A refused status is not repeated for five minutes, and an ended delegate causes no further event.
    expect(requeueAt).toBeGreaterThan(now + 300_000);
  });

  test("gets no write when it shows the status already", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    expect(decide(world(proxy, [member("west", { delegate })]), now)).toEqual({ actions: [], outcome: "Running" });
  });

  test("is forwarded to a delegate that waits for a node: a toleration may be all that it lacks", () => {
    const first = proxyPod();
    const delegate = delegateOf(first, { spec: first.spec ?? {}, status: { phase: "Pending" } });
    const spec = { tolerations: [{ key: "example.com/pool", operator: "Exists" }] };
    const { actions, outcome } = decide(world(proxyPod({ spec }), [member("west", { delegate })]), now);
    expect(outcome).toBe("Scheduling");
    expect(actions).toMatchObject([{ type: "forward", member: "west", patch: { body: { spec } } }]);
  });

  test("gets status before it forwards changes, and gates first", () => {
    const spec = { nodeName: "legation-west", readinessGates: [{ conditionType: "example.com/open" }] };
    const first = boundProxy({ spec });
    const delegate = delegateOf(first, { spec: { ...first.spec, nodeName: "n" }, status: runningStatus() });
    const gate = { type: "example.com/open", status: "True" };
    const changed = boundProxy({
      metadata: { labels: { changed: "yes" } },
      spec: { ...spec, ephemeralContainers: [{ name: "debugger", image: "tool" }] },
      status: { phase: "Pending", conditions: [gate] },
    });
    const nextFor = (there: Stored<Pod>) =>
      decide(world(changed, [member("west", { delegate: there })]), now).actions.map((action) =>
        action.type === "forward" ? `forward to ${action.patch.subresource}` : action.type,
      );
    expect(nextFor(delegate)).toEqual(["status", "forward to status"]);
    // Writes go one after the other: each names the version of the delegate that it was decided on.
    const opened = { ...delegate, status: { ...delegate.status, conditions: [gate] } };
    expect(nextFor(opened)).toEqual(["status", "forward to ephemeralcontainers"]);
    const { ephemeralContainers = [] } = changed.spec ?? {};
    const debugged = { ...opened, spec: { containers: [], ...opened.spec, ephemeralContainers } };
    expect(nextFor(debugged)).toEqual(["status", "forward to undefined"]);
  });

  test("still gets its delegate's kubelet's additions after its end", () => {
    const proxy = boundProxy({ status: endedStatus(0) });
    const sandbox = { type: "PodReadyToStartContainers", status: "False" };
    const delegate = delegateOf(proxy, { status: { ...endedStatus(0), conditions: [sandbox] } });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["status"]);
  });

  test("takes no status from a delegate other than the recorded one", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const delegate = delegateOf(proxy, { uid: "forged", spec: { nodeName: "n" }, status: endedStatus(0) });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["delete west"]);
  });

  test("is left as it is while its member does not answer", () => {
    const observed = world(boundProxy({ status: runningStatus() }), [member("west", { reachable: false })]);
    expect(decide(observed, now)).toEqual({ actions: [], outcome: "Unreachable" });
  });

  test("is set not Ready, once, while its node does not report", () => {
    const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status: "True" }));
    const proxy = boundProxy({ status: { ...runningStatus(), conditions } });
    const unheard = { unheard: () => true };
    const gone = [member("west", { reachable: false })];
    const { actions } = decide(world(proxy, gone, unheard), now);
    expect(actions).toMatchObject([
      { type: "status", patch: { status: { conditions: [{ type: "Ready", status: "False" }] } } },
    ]);
    const marked = { ...conditions[0], type: "Ready", status: "False" };
    const shown = boundProxy({ status: { ...runningStatus(), conditions: [marked] } });
    expect(decide(world(shown, gone, unheard), now).actions).toEqual([]);
    const ended = boundProxy({ status: { ...runningStatus(), phase: "Succeeded", conditions } });
    expect(decide(world(ended, gone, unheard), now).actions).toEqual([]);
  });

  describe("with a delegate that is being deleted in its member", () => {
    const owned = (kind: string, apiVersion = "apps/v1"): ReturnType<typeof boundProxy> =>
      boundProxy({
        metadata: { ownerReferences: [{ apiVersion, kind, name: "web", uid: "owner", controller: true }] },
        status: runningStatus(),
      });
    const drained = {
      ...runningStatus(),
      conditions: [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" }],
    };
    const decided = (proxy: ReturnType<typeof boundProxy>, grace = 45): readonly Action[] => {
      const metadata = { ...deleting, deletionGracePeriodSeconds: grace };
      const delegate = delegateOf(proxy, { metadata, status: drained });
      return decide(world(proxy, [member("west", { delegate })]), now).actions;
    };
    const evictions = (proxy: ReturnType<typeof boundProxy>, grace?: number): readonly Action[] =>
      decided(proxy, grace).filter(({ type }) => type === "evict");

    test("is deleted with the same grace period, so that its workload replaces it now", () => {
      for (const kind of ["ReplicaSet", "StatefulSet"]) {
        expect(evictions(owned(kind))).toEqual([{ type: "evict", proxyUid: "uid-1", graceSeconds: 45 }]);
      }
      expect(evictions(owned("Job", "batch/v1"), 0)).toEqual([{ type: "evict", proxyUid: "uid-1", graceSeconds: 1 }]);
    });

    test("stays if no controller, or an engine, would replace it, and gets the end", () => {
      expect(evictions(boundProxy({ status: runningStatus() }))).toEqual([]);
      expect(evictions(owned("Workflow", "argoproj.io/v1alpha1"))).toEqual([]);
    });

    test("is set not Ready, once, where it stays", () => {
      const ready = { type: "Ready", status: "True", lastTransitionTime: "2026-02-03T04:00:00Z" };
      const running = { ...runningStatus(), conditions: [ready] };
      const proxy = boundProxy({ status: running });
      const delegate = delegateOf(proxy, { metadata: deleting, status: running });
      const west = member("west", { delegate });
      const at = new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
      expect(decide(world(proxy, [west]), now).actions).toMatchObject([
        { type: "status", patch: { status: { conditions: [{ ...ready, status: "False", lastTransitionTime: at }] } } },
      ]);
      const told = boundProxy({ status: { ...running, conditions: [{ ...ready, status: "False" }] } });
      expect(decide(world(told, [west]), now + 60_000).actions).toEqual([]);
    });

    test("is not marked as disrupted before its delegate has ended", () => {
      const types = (proxy: ReturnType<typeof boundProxy>): string[] =>
        decided(proxy).flatMap((action) =>
          action.type === "status" && Array.isArray(action.patch.status.conditions)
            ? action.patch.status.conditions.map((condition: { type: string }) => condition.type)
            : [],
        );
      expect(types(boundProxy({ status: runningStatus() }))).not.toContain("DisruptionTarget");
      const evicted = delegateOf(boundProxy(), { metadata: deleting, status: drained });
      const lost = decide(world(boundProxy({ status: runningStatus() }), [member("west", { departed: evicted })]), now);
      expect(JSON.stringify(lost.actions)).toContain('"reason":"EvictionByEvictionAPI"');
      // A single write carries both.
      const metadata = { ...deleting, deletionGracePeriodSeconds: 45 };
      expect(types(boundProxy({ metadata, status: runningStatus() }))).not.toContain("DisruptionTarget");
      const ended = delegateOf(boundProxy(), {
        metadata: deleting,
        status: { ...endedStatus(143), conditions: drained.conditions },
      });
      const told = decide(
        world(boundProxy({ metadata, status: runningStatus() }), [member("west", { delegate: ended })]),
        now,
      );
      expect(JSON.stringify(told.actions)).toContain('"reason":"EvictionByEvictionAPI"');
    });
  });

  test("ends Failed as a disruption when its delegate vanished", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const { actions, outcome } = decide(world(proxy, [member("west")], gone), now);
    expect(outcome).toBe("Vanished");
    expect(actions).toEqual([
      expect.objectContaining({
        type: "status",
        patch: expect.objectContaining({
          status: expect.objectContaining({ phase: "Failed", reason: "DeletedInMember" }),
        }),
      }),
    ]);
  });

  test("gets the end that was seen when its delegate vanished after its end", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const departed = delegateOf(proxy, { status: endedStatus(0) });
    const { actions } = decide(world(proxy, [member("west", { departed })]), now);
    expect(actions).toEqual([
      {
        type: "status",
        patch: expect.objectContaining({ status: expect.objectContaining({ phase: "Succeeded" }) }),
        resourceVersion: "1",
      },
    ]);
  });

  test("gets a new delegate in the same member, and records it, if it has no controller and never started", () => {
    const proxy = boundProxy();
    expect(names(decide(world(proxy, [member("west"), member("east")], gone), now).actions)).toEqual(["create west"]);
    const again = delegateOf(proxy, { uid: "two", spec: { nodeName: "n2" } });
    expect(decide(world(proxy, [member("west", { delegate: again })]), now).actions).toEqual([
      { type: "recordDelegate", proxyUid: "uid-1", resourceVersion: "1", delegateUid: "two", memberNode: "n2" },
    ]);
  });

  test("gets no new delegate while its namespace is not opted in, and reports that", () => {
    const observed = world(boundProxy(), [member("west")], { optedIn: false, ...gone });
    expect(decide(observed, now)).toMatchObject({
      actions: [{ type: "report", reason: "NotOptedIn" }],
      outcome: "Waiting",
      requeueAt: now + 1000,
    });
  });

  test("does not keep the conditions of the earlier delegate with the new one", () => {
    const [theirs, ours] = ["example.com/theirs", "example.com/ours"].map((type) => ({ type, status: "True" }));
    const conditions = [theirs, ours].flatMap((condition) => condition ?? []);
    const proxy = boundProxy({ status: { phase: "Pending", conditions } });
    const again = (record: object, told: typeof conditions): Action[] => {
      const metadata = { annotations: { "legation.dev/forwarded": JSON.stringify(record) } };
      const made = delegateOf(proxy);
      const annotations = { ...made.metadata.annotations, ...metadata.annotations };
      const departed = {
        ...made,
        metadata: { ...made.metadata, annotations, deletionTimestamp: "2026-01-01T00:00:00Z" },
        status: { phase: "Pending", conditions: told },
      };
      return [...decide(world(proxy, [member("west", { departed })], gone), now).actions];
    };
    const withdrawn = {
      type: "status",
      patch: { status: { conditions: [{ type: "example.com/theirs", $patch: "delete" }] } },
    };
    const made = { type: "create", member: "west" };
    const told = conditions.slice(0, 1);
    const keys = { labels: [], annotations: [] };
    expect(again({ ...keys, conditions: ["example.com/theirs"] }, told)).toMatchObject([withdrawn, made]);
    // The condition was about to be withdrawn.
    expect(again({ ...keys, conditions: ["example.com/theirs"] }, [])).toMatchObject([withdrawn, made]);
    // An earlier version created it.
    expect(again(keys, told)).toMatchObject([withdrawn, made]);
    expect(again({ ...keys, conditions: [] }, told)).toMatchObject([made]);
  });

  test("ends Failed if the member would not take it again", () => {
    const attempts = new Map([["west", refused("RefusedByMember")]]);
    const { actions, outcome } = decide(
      world(boundProxy(), [member("west")], { memory: memory({ ...gone.memory, attempts }) }),
      now,
    );
    expect(outcome).toBe("Vanished");
    expect(actions).toEqual([
      expect.objectContaining({
        type: "status",
        patch: expect.objectContaining({
          status: expect.objectContaining({
            phase: "Failed",
            message: "Cluster west: the pod was deleted there and cannot be made again: no",
          }),
        }),
      }),
    ]);
  });

  test("ends Failed if it never started and has a controller, which replaces it", () => {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "r", controller: true }];
    const { outcome } = decide(world(boundProxy({ metadata: { ownerReferences } }), [member("west")], gone), now);
    expect(outcome).toBe("Vanished");
  });

  test("lets no delegate run on once it is terminal", () => {
    const proxy = boundProxy({ status: endedStatus(1) });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["delete west"]);
  });

  test("has no delegate anywhere if it is bound to a real node", () => {
    const proxy = boundProxy({ spec: { nodeName: "east-legation-node" } });
    const members = [member("west", { delegate: delegateOf(proxy) }), member("node")];
    expect(names(decide(world(proxy, members), now).actions)).toEqual(["delete west"]);
  });

  test("never has a second delegate elsewhere", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const west = member("west", { delegate: delegateOf(proxy, { status: runningStatus() }) });
    const east = member("east", { delegate: delegateOf(proxy, { uid: "late" }) });
    expect(decide(world(proxy, [west, east]), now)).toEqual({
      actions: [{ type: "delete", member: "east", uid: "late", surplus: true }],
      outcome: "Running",
      requeueAt: now + 10_000,
    });
  });

  test("ends Failed when its delegate vanished, whatever another member claims, and gets no new one before that is gone", () => {
    const lost = (proxy: ReturnType<typeof boundProxy>): ReturnType<typeof decide> =>
      decide(
        world(proxy, [member("west"), member("east", { delegate: delegateOf(proxy, { uid: "forged" }) })], gone),
        now,
      );
    const failed = lost(boundProxy({ status: runningStatus() }));
    expect([failed.outcome, ...names(failed.actions)]).toEqual(["Vanished", "status", "delete east"]);
    const again = lost(boundProxy());
    expect([again.outcome, ...names(again.actions)]).toEqual(["Withdrawing", "delete east"]);
  });

  test("gets its own delegate's status, and forwards to it, before it deletes one in another member", () => {
    const proxy = boundProxy({ metadata: { labels: { changed: "yes" } } });
    const west = member("west", { delegate: delegateOf(boundProxy(), { status: runningStatus() }) });
    const east = member("east", { delegate: delegateOf(proxy, { uid: "forged" }) });
    const { actions } = decide(world(proxy, [east, west]), now);
    expect(names(actions)).toEqual(["status", "forward west", "delete east"]);
  });
});

describe("a proxy that is being deleted", () => {
  const ending = { metadata: { ...deleting, deletionGracePeriodSeconds: 17 }, status: runningStatus() };

  test("has its delegate deleted with the caller's grace period", () => {
    const proxy = boundProxy(ending);
    const delegate = delegateOf(proxy, { status: runningStatus() });
    expect(decide(world(proxy, [member("west", { delegate })]), now).actions).toEqual([
      { type: "delete", member: "west", uid: "delegate-uid", graceSeconds: 17 },
    ]);
  });

  test("has it deleted once, and again only with a shorter period", () => {
    const proxy = boundProxy(ending);
    const asked = (deletionGracePeriodSeconds: number): string[] => {
      const metadata = { ...deleting, deletionGracePeriodSeconds };
      const delegate = delegateOf(proxy, { metadata, status: runningStatus() });
      return names(decide(world(proxy, [member("west", { delegate })]), now).actions);
    };
    expect(asked(17)).toEqual([]);
    expect(asked(30)).toEqual(["delete west"]);
  });

  test("keeps the grace period of an override, unless the caller asked for another one", () => {
    const asked = (deletionGracePeriodSeconds: number): readonly Action[] => {
      const metadata = { ...ending.metadata, deletionGracePeriodSeconds };
      const proxy = boundProxy({ metadata, spec: { terminationGracePeriodSeconds: 30 }, status: runningStatus() });
      const spec = { terminationGracePeriodSeconds: 600 };
      const delegate = delegateOf(proxy, { spec, status: runningStatus() });
      return decide(world(proxy, [member("west", { delegate })]), now).actions;
    };
    expect(asked(30)[0]).toEqual({ type: "delete", member: "west", uid: "delegate-uid" });
    expect(asked(5)[0]).toEqual({ type: "delete", member: "west", uid: "delegate-uid", graceSeconds: 5 });
  });

  test("ends even if its grace period is beyond JavaScript's integers", () => {
    const forever = JSON.rawJSON("9223372036854775807") as unknown as number;
    const proxy = boundProxy({ ...ending, metadata: { ...ending.metadata, deletionGracePeriodSeconds: forever } });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    const { actions } = decide(world(proxy, [member("west", { delegate })]), now);
    expect(actions[0]).toMatchObject({ type: "delete", graceSeconds: Number.MAX_SAFE_INTEGER });
    expect(names(decide(world(proxy, [member("west")], gone), now).actions)).toEqual([
      "status",
      "deleteProxy",
      "removeFinalizer",
    ]);
  });

  test("still gets status while its delegate ends", () => {
    const proxy = boundProxy(ending);
    const metadata = { ...deleting, deletionGracePeriodSeconds: 17 };
    const delegate = delegateOf(proxy, { metadata, status: endedStatus(143) });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["status"]);
  });

  test("is released with its last status, grace 0 and without the finalizer once the delegate is gone", () => {
    const proxy = boundProxy(ending);
    const departed = delegateOf(proxy, { status: endedStatus(143) });
    const { actions } = decide(world(proxy, [member("west", { departed })]), now);
    expect(names(actions)).toEqual(["status", "deleteProxy", "removeFinalizer"]);
  });

  test("needs one write only if it had ended", () => {
    const metadata = { ...deleting, deletionGracePeriodSeconds: 0 };
    const proxy = boundProxy({ metadata, status: endedStatus(0) });
    const departed = delegateOf(proxy, { status: endedStatus(0) });
    expect(names(decide(world(proxy, [member("west", { departed })]), now).actions)).toEqual(["removeFinalizer"]);
  });

  test("takes its delegate with it, which keeps its own grace period, if it is unbound", () => {
    const proxy = proxyPod({ metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
    const delegate = delegateOf(proxy, { spec: { nodeName: "n" } });
    expect(decide(world(proxy, [member("west", { delegate })]), now).actions).toEqual([
      { type: "delete", member: "west", uid: "delegate-uid" },
    ]);
  });

  test("goes at once without a delegate anywhere", () => {
    const proxy = proxyPod({ metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
    expect(names(decide(world(proxy, [member("west"), member("east")]), now).actions)).toEqual(["removeFinalizer"]);
  });

  test("goes only after the member was asked if a response was lost", () => {
    const proxy = proxyPod({ metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
    const observed = world(proxy, [member("west")], { memory: memory({ uncertain: "west" }) });
    expect(names(decide(observed, now).actions)).toEqual(["confirmCreated west"]);
  });

  test("is left to the other finalizers that hold it", () => {
    const metadata = { ...ending.metadata, deletionGracePeriodSeconds: 0, finalizers: ["other"] };
    expect(decide(world(boundProxy({ metadata }), [member("west")]), now).actions).toEqual([]);
  });

  test.each([
    ["bound", boundProxy],
    ["unbound", proxyPod],
  ])("has no running delegate once its member returns, while other finalizers hold it (%s)", (_, make) => {
    const metadata = {
      ...ending.metadata,
      deletionGracePeriodSeconds: 0,
      finalizers: ["batch.kubernetes.io/job-tracking"],
    };
    const proxy = make({ metadata, status: endedStatus(137) });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    const away = member("west", { delegate, reachable: false });
    expect(decide(world(proxy, [away]), now)).toEqual({ actions: [], outcome: "Released" });
    // The delegate's own grace period counts, since the caller gave none.
    expect(decide(world(proxy, [member("west", { delegate })]), now)).toEqual({
      actions: [{ type: "delete", member: "west", uid: "delegate-uid" }],
      outcome: "Released",
    });
  });

  describe("with a delegate that another member claims", () => {
    const forged = (proxy: ReturnType<typeof boundProxy>): ReturnType<typeof member> =>
      member("east", { delegate: delegateOf(proxy, { uid: "forged", status: runningStatus() }) });

    test("ends with its own delegate, and waits for the other one as long as a kubelet may take", () => {
      const proxy = boundProxy(ending);
      const delegate = delegateOf(proxy, { status: runningStatus() });
      const running = decide(world(proxy, [forged(proxy), member("west", { delegate })]), now);
      expect(names(running.actions)).toEqual(["delete west", "delete east"]);
      const departed = delegateOf(proxy, { status: endedStatus(143) });
      const gone = world(proxy, [forged(proxy), member("west", { departed })]);
      expect(names(decide(gone, now).actions)).toEqual(["delete east"]);
      const { deletionTimestamp } = proxy.metadata;
      const { actions, requeueAt } = decide(gone, Date.parse(deletionTimestamp ?? "") + 10_000);
      expect(names(actions)).toEqual(["status", "deleteProxy", "removeFinalizer", "delete east"]);
      expect(actions.at(-1)).toEqual({ type: "delete", member: "east", uid: "forged", surplus: true });
      expect(requeueAt).toBe(Date.parse(deletionTimestamp ?? "") + 20_000);
    });

    test("goes by force while its own member does not answer", () => {
      const proxy = boundProxy({ ...ending, metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
      const west = member("west", { reachable: false, delegate: delegateOf(proxy, { status: runningStatus() }) });
      expect(names(decide(world(proxy, [west, forged(proxy)]), now).actions)).toEqual([
        "removeFinalizer",
        "delete east",
      ]);
    });

    test("waits for it if its own Cluster is gone and that very delegate is shown under another name", () => {
      const proxy = boundProxy(ending);
      const again = member("west-again", { delegate: delegateOf(proxy, { status: runningStatus() }) });
      const { actions, outcome } = decide(world(proxy, [again]), now);
      expect(names(actions)).toEqual(["delete west-again"]);
      expect(outcome).toBe("Ending");
    });

    test("waits for its recorded delegate under another name without reconciling again and again", () => {
      const proxy = boundProxy(ending);
      const again = member("west-again", {
        delegate: delegateOf(proxy, { metadata: deleting, status: runningStatus() }),
      });
      const later = Date.parse(proxy.metadata.deletionTimestamp ?? "") + 60_000;
      const { outcome, requeueAt } = decide(world(proxy, [again]), later);
      expect({ outcome, requeueAt }).toEqual({ outcome: "Ending", requeueAt: undefined });
    });
  });

  test("waits for its kubelet's end even without its finalizer", () => {
    const proxy = boundProxy({ ...ending, metadata: { ...ending.metadata, finalizers: [] } });
    const delegate = delegateOf(proxy, { status: runningStatus() });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["delete west"]);
    const departed = delegateOf(proxy, { status: endedStatus(143) });
    expect(names(decide(world(proxy, [member("west", { departed })]), now).actions)).toEqual(["status", "deleteProxy"]);
  });

  describe("in a member that does not answer", () => {
    const lost = (proxy: ReturnType<typeof boundProxy>): ReturnType<typeof member> =>
      member("west", { reachable: false, delegate: delegateOf(proxy, { status: runningStatus() }) });

    test("waits, as on a lost node", () => {
      const proxy = boundProxy(ending);
      expect(decide(world(proxy, [lost(proxy)]), now)).toEqual({ actions: [], outcome: "Ending" });
    });

    test("is set not Ready, once, while its node does not report", () => {
      const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status: "True" }));
      const proxy = boundProxy({ ...ending, status: { ...runningStatus(), conditions } });
      const unheard = { unheard: () => true };
      const { actions, outcome } = decide(world(proxy, [lost(proxy)], unheard), now);
      expect(outcome).toBe("Ending");
      expect(actions).toMatchObject([
        { type: "status", patch: { status: { conditions: [{ type: "Ready", status: "False" }] } } },
      ]);
      const shown = boundProxy({
        ...ending,
        status: { ...runningStatus(), conditions: [{ type: "Ready", status: "False" }] },
      });
      expect(decide(world(shown, [lost(shown)], unheard), now).actions).toEqual([]);
    });

    test("keeps its readiness for another member that may have a delegate of it", () => {
      const proxy = boundProxy({
        ...ending,
        status: { ...runningStatus(), conditions: [{ type: "Ready", status: "True" }] },
      });
      const west = member("west", { delegate: delegateOf(proxy, { metadata: deleting, status: proxy.status ?? {} }) });
      const east = member("east", { reachable: false });
      const observed = world(proxy, [west, east], { unheard: () => true, memory: memory({ uncertain: "east" }) });
      expect(names(decide(observed, now).actions)).toEqual([]);
    });

    test("goes when it was deleted by force", () => {
      const proxy = boundProxy({ ...ending, metadata: { ...deleting, deletionGracePeriodSeconds: 0 } });
      expect(names(decide(world(proxy, [lost(proxy)]), now).actions)).toEqual(["removeFinalizer"]);
    });

    test("goes when the virtual node is out of service", () => {
      const proxy = boundProxy(ending);
      const observed = world(proxy, [lost(proxy)], { outOfService: () => true });
      expect(names(decide(observed, now).actions)).toEqual(["status", "deleteProxy", "removeFinalizer"]);
    });

    test("goes when its delegate was seen to have ended", () => {
      const proxy = boundProxy({ metadata: { ...deleting, deletionGracePeriodSeconds: 0 }, status: endedStatus(0) });
      const west = member("west", { reachable: false, delegate: delegateOf(proxy, { status: endedStatus(0) }) });
      expect(names(decide(world(proxy, [west]), now).actions)).toEqual(["removeFinalizer"]);
    });
  });

  test("keeps its final status visible while another finalizer holds it", () => {
    const finalizers = [DELEGATE_FINALIZER, "batch.kubernetes.io/job-tracking"];
    const metadata = { ...deleting, deletionGracePeriodSeconds: 0, finalizers };
    const proxy = boundProxy({ metadata, status: runningStatus() });
    expect(names(decide(world(proxy, [member("west")], gone), now).actions)).toEqual(["status", "removeFinalizer"]);
  });
});

describe("a delegate without a proxy", () => {
  test("is swept", () => {
    const delegate = delegateOf(proxyPod());
    expect(decide(world(undefined, [member("west", { delegate })]), now).actions).toEqual([
      { type: "sweep", member: "west", uid: "delegate-uid", proxyUid: "uid-1" },
    ]);
  });

  test("is left alone while its member does not answer or it is being deleted", () => {
    const delegate = delegateOf(proxyPod());
    const going = delegateOf(proxyPod(), { metadata: deleting });
    const members = [member("west", { delegate, reachable: false }), member("east", { delegate: going })];
    expect(decide(world(undefined, members), now).actions).toEqual([]);
  });
});
