import { describe, expect, test } from "vitest";
import { CLUSTER_ANNOTATION } from "../../../../../src/api/keys.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { proxyPod, runningStatus } from "../../../../support/builders/pod.ts";
import { names } from "../decided.ts";
import { boundProxy, delegateOf, member, memory, world } from "../world.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const proxy = proxyPod();
const proxyUid = proxy.metadata.uid;
const uncertain = memory({ uncertain: "west", uncertainCreate: { since: now, lastAt: now, message: "no answer" } });
const lost = member("west", { reachable: false });
const east = member("east");
const unheard = (name: string): boolean => name === "west";
const scheduled = delegateOf(proxy, { spec: { nodeName: "west-node-1" } });

describe("a pod whose member does not answer", () => {
  test.each([
    { has: "may have", west: lost, bind: {} },
    { has: "has", west: { ...lost, delegate: delegateOf(proxy) }, bind: {} },
    {
      has: "has",
      west: { ...lost, delegate: scheduled },
      bind: { delegateUid: "delegate-uid", memberNode: "west-node-1" },
    },
  ])("is bound to the member's node once that is not Ready, if the member $has it: $bind", ({ has, west, bind }) => {
    const decided = (parts: object) => decide(world(proxy, [west, east], { memory: uncertain, ...parts }), now).actions;
    expect(decided({ unheard })).toEqual([
      { type: "bind", member: "west", proxyUid, ...bind },
      {
        type: "announce",
        proxyUid,
        reason: "BoundToLostMember",
        message: expect.stringContaining(`west: ${has} the pod and does not answer; it is bound to the lost node`),
      },
    ]);
    // Nodes stay Ready while most members are lost.
    expect(decided({})).toMatchObject([{ type: "report", reason: "ClusterNotReady" }]);
  });

  test("is not bound if it has found no node there, so that it can still go elsewhere", () => {
    const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "too full" }];
    const west = { ...lost, delegate: delegateOf(proxy, { status: { phase: "Pending", conditions } }) };
    expect(decide(world(proxy, [west, east], { unheard }), now).actions).toMatchObject([{ type: "report" }]);
  });

  test("goes on being bound there when the member answers again, since the first Binding may still happen", () => {
    const found = member("west", { delegate: delegateOf(proxy) });
    for (const west of [member("west"), found]) {
      const decided = decide(world(proxy, [west, east], { memory: memory({ binding: { member: "west" } }) }), now);
      expect(decided.actions).toEqual([{ type: "bind", member: "west", proxyUid }]);
    }
  });
});

describe("a pod that was bound to a lost member without a recorded delegate", () => {
  const metadata = { annotations: { [CLUSTER_ANNOTATION]: "west" } };
  const bound = proxyPod({ metadata, spec: { nodeName: "legation-west" } });
  const actions = (members: Parameters<typeof world>[1], parts: object = {}) =>
    decide(world(bound, members, parts), now).actions;

  test("waits while its member is lost", () => {
    expect(actions([lost, east], { unheard, memory: uncertain })).toEqual([]);
  });

  test("has its delegate recorded, or created, when its member answers again", () => {
    expect(actions([member("west", { delegate: scheduled }), east])).toMatchObject([{ type: "recordDelegate" }]);
    expect(actions([member("west"), east], { memory: uncertain })).toMatchObject([{ type: "create", member: "west" }]);
  });

  test("first loses any delegate that another member has, or may have", () => {
    const elsewhere = member("east", { delegate: scheduled });
    expect(actions([member("west"), elsewhere])).toEqual([{ type: "delete", member: "east", uid: "delegate-uid" }]);
    const sent = memory({ uncertain: "east" });
    expect(actions([member("west"), east], { memory: sent })).toEqual([
      { type: "confirmCreated", member: "east", proxyUid },
    ]);
  });
});

describe("a proxy without a node", () => {
  describe("with a delegate that a member may have and does not show", () => {
    test("waits for a silent member that has it", () => {
      const proxy = proxyPod();
      const west = member("west", { reachable: false, delegate: delegateOf(proxy) });
      expect(decide(world(proxy, [west, member("east")]), now).outcome).toBe("Unreachable");
    });
  });
});

describe("a bound proxy", () => {
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

  test("has no delegate anywhere if it is bound to a real node", () => {
    const proxy = boundProxy({ spec: { nodeName: "east-legation-node" } });
    const members = [member("west", { delegate: delegateOf(proxy) }), member("node")];
    expect(names(decide(world(proxy, members), now).actions)).toEqual(["delete west"]);
  });
});
