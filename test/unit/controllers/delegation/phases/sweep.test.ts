import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { proxyPod, runningStatus } from "../../../../support/builders/pod.ts";
import { deleting, now } from "../decided.ts";
import { boundProxy, delegateOf, member, world } from "../world.ts";

describe("a bound proxy", () => {
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
});

describe("a delegate without a proxy", () => {
  test("is swept from the member that has it", () => {
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
