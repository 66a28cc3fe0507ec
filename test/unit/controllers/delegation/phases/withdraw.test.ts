import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { deleting, now, unschedulable } from "../decided.ts";
import { delegateOf, member, type TestMember, world } from "../world.ts";

const node = { nodeName: "n" };
const proxy = proxyPod();

function holding(name: string, spec: object, parts: { readonly reachable?: boolean } = {}): TestMember {
  const metadata = { uid: name, resourceVersion: "7" };
  return member(name, { delegate: delegateOf(proxy, { uid: name, spec, metadata }), ...parts });
}

test.each<[string, object, object, object]>([
  [
    "deletes one of two delegates without nodes, unless it has got one since",
    {},
    {},
    { member: "east", resourceVersion: "7" },
  ],
  [
    "deletes the one of two delegates without a node, unless it has got one since",
    {},
    node,
    { member: "west", resourceVersion: "7" },
  ],
])("%s", (_, inWest, inEast, deletion) => {
  const { actions } = decide(world(proxy, [holding("west", inWest), holding("east", inEast)]), 1_000_000);
  expect(actions).toEqual([{ type: "delete", uid: expect.any(String), ...deletion }]);
});

test.each<[string, TestMember, string]>([
  ["binds to the first of two delegates with nodes, and deletes none before", holding("west", node), "west"],
  [
    "binds to the one of two delegates with nodes whose member answers",
    holding("west", node, { reachable: false }),
    "east",
  ],
])("%s", (_, west, expected) => {
  const { actions } = decide(world(proxy, [west, holding("east", node)]), 1_000_000);
  expect(actions).toEqual([
    { type: "bind", member: expected, proxyUid: proxy.metadata.uid, delegateUid: expected, memberNode: "n" },
  ]);
});

test("deletes the other of two delegates when one has a node in a silent member, where it may run", () => {
  const members = [holding("west", {}), holding("east", node, { reachable: false })];
  expect(decide(world(proxy, members), 1_000_000).actions).toEqual([
    { type: "delete", member: "west", uid: "west", resourceVersion: "7" },
  ]);
});

describe("a proxy without a node", () => {
  describe("with a delegate that the member cannot schedule", () => {
    const proxy = proxyPod();

    test("is not created elsewhere before it is seen to be gone", () => {
      const going = delegateOf(proxy, { status: unschedulable, metadata: deleting });
      const observed = world(proxy, [member("west", { delegate: going }), member("east")]);
      expect(decide(observed, now)).toEqual({ actions: [], outcome: "Withdrawing" });
    });
  });

  test("never keeps two delegates: the scheduled one stays", () => {
    const proxy = proxyPod();
    const west = member("west", { delegate: delegateOf(proxy) });
    const east = member("east", { delegate: delegateOf(proxy, { uid: "two", spec: { nodeName: "n" } }) });
    expect(decide(world(proxy, [west, east]), now).actions).toEqual([
      { type: "delete", member: "west", uid: "delegate-uid", resourceVersion: "1" },
    ]);
  });
});
