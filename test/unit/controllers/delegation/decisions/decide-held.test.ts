import { expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decisions/decide.ts";
import { BEING_REMOVED } from "../../../../../src/placement/member-candidate.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { delegateOf, member, world } from "../world.ts";

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
