import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { NO_VIRTUAL_NODE } from "../../../../../src/placement/member-candidate.ts";
import { because } from "../../../../../src/placement/needs.ts";
import { proxyPod, runningStatus } from "../../../../support/builders/pod.ts";
import { deleting, names, now, refused } from "../decided.ts";
import { delegateOf, member, memory, world } from "../world.ts";

describe("a proxy without a node", () => {
  test("is bound to its delegate's node, and does not run again, if the delegate ran and went before the host saw it", () => {
    const proxy = proxyPod();
    const departed = delegateOf(proxy, { spec: { nodeName: "west-node-1" }, status: runningStatus() });
    const bind = { type: "bind", member: "west", delegateUid: "delegate-uid", memberNode: "west-node-1" };
    expect(decide(world(proxy, [member("west", { departed }), member("east")]), now).actions).toMatchObject([bind]);
    const idle = delegateOf(proxy, { spec: { nodeName: "west-node-1" } });
    expect(names(decide(world(proxy, [member("west", { departed: idle })]), now).actions)).toEqual(["create west"]);
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

  describe("with a delegate that the member cannot schedule", () => {
    const proxy = proxyPod();

    test("is bound to it, and ends with it, if it has a node and is being deleted", () => {
      const going = delegateOf(proxy, { spec: { nodeName: "node-1" }, status: runningStatus(), metadata: deleting });
      const observed = world(proxy, [member("west", { delegate: going }), member("east")]);
      expect(names(decide(observed, now).actions)).toEqual(["bind west"]);
      const ended = delegateOf(proxy, { status: { phase: "Failed", reason: "Evicted" }, metadata: deleting });
      const over = world(proxy, [member("west", { delegate: ended }), member("east")]);
      expect(names(decide(over, now).actions)).toEqual(["bind west"]);
    });
  });

  test("is not bound to a virtual node that the host lacks, and reports that", () => {
    const proxy = proxyPod();
    const delegate = delegateOf(proxy, { spec: { nodeName: "n" } });
    const west = member("west", { delegate });
    const without = { ...west, candidate: { ...west.candidate, closed: NO_VIRTUAL_NODE } };
    expect(decide(world(proxy, [without]), now)).toMatchObject({ actions: [{ type: "report" }], outcome: "Waiting" });
    expect(decide(world(proxy, [west]), now).outcome).toBe("Binding");
  });
});

describe("a pod whose Binding may have happened", () => {
  const proxy = proxyPod();
  const scheduled = delegateOf(proxy, { spec: { nodeName: "west-node-1" } });
  const binding = { member: "west", delegateUid: "delegate-uid", memberNode: "west-node-1" };

  test.each([
    ["has gone meanwhile", member("west")],
    ["is shown by the member", member("west", { delegate: scheduled })],
  ])("is bound again as before, and not created elsewhere, when its delegate %s", (_, west) => {
    const { actions } = decide(world(proxy, [west, member("east")], { memory: memory({ binding }) }), now);
    expect(actions).toEqual([{ type: "bind", proxyUid: "uid-1", ...binding }]);
  });
});
