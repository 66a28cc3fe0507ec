import { expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decisions/decide.ts";
import { BEING_REMOVED } from "../../../../../src/placement/member-candidate.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { delegateOf, member, memory, world } from "../world.ts";

test.each([{ optedIn: false }, { invalid: "annotation legation.dev/clusters: names no cluster" }])(
  "a Cluster that is being deleted is rid of a delegate that waits, though nobody knows where else it may go: %j",
  (unknown) => {
    const proxy = proxyPod();
    const west = member("west", { delegate: delegateOf(proxy) });
    const decided = (closed?: typeof BEING_REMOVED): string[] => {
      const candidate = { ...west.candidate, ...(closed === undefined ? {} : { closed }) };
      return decide(world(proxy, [{ ...west, candidate }], unknown), 1_000_000).actions.map(({ type }) => type);
    };
    expect(decided(BEING_REMOVED)).toEqual(["refuse", "delete"]);
    expect(decided()).toEqual(["report"]);
  },
);

test("a proxy that leaves a member whose scheduler has said nothing says so, and nothing again where that one did", () => {
  const now = 1_000_000;
  const proxy = proxyPod();
  const attempts = new Map([["west", { since: now - 30_000, refusals: 0 }]]);
  const decided = (status: object): unknown => {
    const delegate = delegateOf(proxy, { spec: { schedulerName: "volcano" }, status });
    const members = [member("west", { delegate }), member("east")];
    return decide(world(proxy, members, { memory: memory({ attempts }) }), now).actions;
  };
  const message = "west: its scheduler (volcano) has not answered within 30 s";
  const move = [{ type: "promise" }, { type: "refuse" }, { type: "delete" }];
  expect(decided({ phase: "Pending" })).toMatchObject([
    { type: "report", reason: "Unschedulable", message: expect.stringContaining(message) },
    ...move,
  ]);
  const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no node" }];
  expect(decided({ phase: "Pending", conditions })).toMatchObject(move);
});
