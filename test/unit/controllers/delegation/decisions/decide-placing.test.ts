import { expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decisions/decide.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { delegateOf, member, world } from "../world.ts";

const node = { nodeName: "n" };

test.each<[string, object, object, object]>([
  ["none has a node: one is deleted unless it has got one since", {}, {}, { member: "east", resourceVersion: "7" }],
  ["one has a node: the other is deleted unless it has, too", {}, node, { member: "west", resourceVersion: "7" }],
  ["both have a node: one is deleted, whatever it does", node, node, { member: "east" }],
])("a proxy has two delegates, and %s", (_, inWest, inEast, deletion) => {
  const proxy = proxyPod();
  const holding = (name: string, spec: object) =>
    member(name, { delegate: delegateOf(proxy, { uid: name, spec, metadata: { uid: name, resourceVersion: "7" } }) });
  const { actions } = decide(world(proxy, [holding("west", inWest), holding("east", inEast)]), 1_000_000);
  expect(actions).toEqual([{ type: "delete", uid: expect.any(String), ...deletion }]);
});
