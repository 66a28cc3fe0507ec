import { expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { delegateOf, member, type TestMember, world } from "../world.ts";

const node = { nodeName: "n" };
const proxy = proxyPod();

function holding(name: string, spec: object, parts: { readonly reachable?: boolean } = {}): TestMember {
  const metadata = { uid: name, resourceVersion: "7" };
  return member(name, { delegate: delegateOf(proxy, { uid: name, spec, metadata }), ...parts });
}

test.each<[string, object, object, object]>([
  ["none has a node: one is deleted unless it has got one since", {}, {}, { member: "east", resourceVersion: "7" }],
  ["one has a node: the other is deleted unless it has, too", {}, node, { member: "west", resourceVersion: "7" }],
])("a proxy has two delegates, and %s", (_, inWest, inEast, deletion) => {
  const { actions } = decide(world(proxy, [holding("west", inWest), holding("east", inEast)]), 1_000_000);
  expect(actions).toEqual([{ type: "delete", uid: expect.any(String), ...deletion }]);
});

test.each<[string, TestMember, string]>([
  ["the first is bound to, and none is deleted before", holding("west", node), "west"],
  ["the one whose member answers is bound to", holding("west", node, { reachable: false }), "east"],
])("of two delegates with nodes %s: the host may have bound the proxy to either already", (_, west, expected) => {
  const { actions } = decide(world(proxy, [west, holding("east", node)]), 1_000_000);
  expect(actions).toEqual([
    { type: "bind", member: expected, proxyUid: proxy.metadata.uid, delegateUid: expected, memberNode: "n" },
  ]);
});

test("of two delegates one has a node where nobody answers: it may run, so the other one goes and is not bound to", () => {
  const members = [holding("west", {}), holding("east", node, { reachable: false })];
  expect(decide(world(proxy, members), 1_000_000).actions).toEqual([
    { type: "delete", member: "west", uid: "west", resourceVersion: "7" },
  ]);
});
