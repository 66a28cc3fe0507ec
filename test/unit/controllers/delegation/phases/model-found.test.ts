import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { endedStatus, runningStatus } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, gone, member, world } from "../world.ts";

const now = 1_000_000;
const deletionTimestamp = "2026-01-01T00:00:00Z";

/** Cases that the model check (test/unit/model) has found. */
describe("a host store that is behind", () => {
  test("has a delegate that was created for an ended proxy taken away again", () => {
    const proxy = boundProxy({ status: endedStatus(0) });
    const late = delegateOf(proxy, { uid: "late" });
    const { actions } = decide(world(proxy, [member("west", { delegate: late })]), now);
    expect(actions).toEqual([{ type: "delete", member: "west", uid: "late" }]);
  });

  test("has no new delegate created for a bound proxy before one in another member has gone", () => {
    const proxy = boundProxy();
    const leaving = delegateOf(proxy, { uid: "leaving", metadata: { deletionTimestamp } });
    const { actions } = decide(world(proxy, [member("west"), member("east", { delegate: leaving })], gone), now);
    expect(actions).toEqual([]);
  });

  test("has another delegate recorded only if the proxy has not changed since", () => {
    const proxy = boundProxy();
    const again = delegateOf(proxy, { uid: "two", spec: { nodeName: "n2" } });
    const { actions } = decide(world(proxy, [member("west", { delegate: again })]), now);
    expect(actions).toMatchObject([{ type: "recordDelegate", resourceVersion: proxy.metadata.resourceVersion }]);
  });

  test("has a proxy whose delegate vanished fail only if it has not changed since: it may have succeeded", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const { uid, resourceVersion } = proxy.metadata;
    const { actions } = decide(world(proxy, [member("west")], gone), now);
    expect(actions).toMatchObject([{ type: "status", patch: { metadata: { uid, resourceVersion } } }]);
  });
});

test("ends a proxy whose member does not answer as its delegate was last seen to have ended", () => {
  const metadata = { deletionTimestamp, deletionGracePeriodSeconds: 30 };
  const proxy = boundProxy({ metadata, status: runningStatus() });
  const west = member("west", { reachable: false, delegate: delegateOf(proxy, { status: endedStatus(0) }) });
  const { actions } = decide(world(proxy, [west]), now);
  expect(actions[0]).toMatchObject({ type: "status", patch: { status: { phase: "Succeeded" } } });
});
