import { describe, expect, test } from "vitest";
import {
  blocksDeletion,
  holderOf,
  isAbandoned,
  isNewlyRecorded,
  surplusAwaitedUntil,
} from "../../../../../src/controllers/delegation/decision/delegates.ts";
import { hasProxy, type PodView } from "../../../../../src/controllers/delegation/decision/view.ts";
import type { Stored } from "../../../../../src/kube/objects.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, member, type TestMember, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");

function viewOf(proxy: Stored<object> & Parameters<typeof world>[0], members: readonly TestMember[]): PodView {
  const view = world(proxy, members);
  if (!hasProxy(view)) throw new Error("the view has no proxy");
  return view;
}

describe("of several members with a delegate, the one that stays", () => {
  const proxy = proxyPod();
  const waiting = delegateOf(proxy);
  const bound = delegateOf(proxy, { spec: { nodeName: "node-1" } });
  test.each<[string, readonly TestMember[], string]>([
    ["has it on a node", [member("west", { delegate: waiting }), member("east", { delegate: bound })], "east"],
    [
      "has it on a node and answers",
      [member("west", { delegate: bound, reachable: false }), member("east", { delegate: bound })],
      "east",
    ],
    [
      "has it on a node although it does not answer",
      [member("west", { delegate: waiting }), member("east", { delegate: bound, reachable: false })],
      "east",
    ],
    [
      "does not leave",
      [member("west", { delegate: waiting, removed: true }), member("east", { delegate: waiting })],
      "east",
    ],
    ["is the first, otherwise", [member("west", { delegate: waiting }), member("east", { delegate: waiting })], "west"],
  ])("%s", (_, members, expected) => {
    expect(holderOf(viewOf(proxy, members))?.name).toBe(expected);
  });
});

describe("a proxy that is being deleted", () => {
  const deletedAt = (seconds: number) => ({
    deletionTimestamp: new Date(now + seconds * 1000).toISOString(),
    deletionGracePeriodSeconds: 30,
  });

  test("waits for a surplus delegate as long as a kubelet takes, and for its own without end", () => {
    const proxy = boundProxy({ metadata: deletedAt(30) });
    const own = member("west", { delegate: delegateOf(proxy) });
    const surplus = member("east", { delegate: delegateOf(proxy, { uid: "other" }) });
    const view = viewOf(proxy, [own, surplus]);
    expect(surplusAwaitedUntil(view, now)).toBe(now + 40_000);
    const blocks = (at: number) => [own, surplus].map((each) => blocksDeletion(each, view, at));
    expect([blocks(now), blocks(now + 40_000)]).toEqual([
      [true, true],
      [true, false],
    ]);
  });

  test("waits for no surplus delegate if clocks differ by more than that", () => {
    expect(surplusAwaitedUntil(viewOf(boundProxy({ metadata: deletedAt(3600) }), []), now)).toBeUndefined();
  });

  test("is not held by a member that does not answer once its deletion is forced", () => {
    const lost = member("west", { reachable: false });
    const forced = { ...deletedAt(0), deletionGracePeriodSeconds: 0 };
    const abandoned = [deletedAt(30), forced].map((metadata) =>
      isAbandoned(lost, viewOf(boundProxy({ metadata }), [lost])),
    );
    expect(abandoned).toEqual([false, true]);
  });
});

test("a delegate counts as newly recorded with the record, and with another one", () => {
  const recorded = (uid: string) => boundProxy({ metadata: { annotations: { "legation.dev/delegate-uid": uid } } });
  const cases = [
    [proxyPod(), recorded("a")],
    [recorded("a"), recorded("a")],
    [recorded("a"), recorded("b")],
  ] as const;
  expect(cases.map(([before, after]) => isNewlyRecorded(before, after))).toEqual([true, false, true]);
});
