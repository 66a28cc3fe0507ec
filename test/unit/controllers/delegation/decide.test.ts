import { describe, expect, test } from "vitest";
import { decide } from "../../../../src/controllers/delegation/decide.ts";
import { proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { names, now } from "./decided.ts";
import { boundProxy, delegateOf, member, world } from "./world.ts";

test("does not wait for a member that claims a delegate of the proxy's name", () => {
  const proxy = boundProxy();
  const forged = delegateOf(proxyPod({ uid: "uid-0" }), { uid: "forged" });
  const members = [
    member("west", { delegate: delegateOf(proxy, { status: runningStatus() }) }),
    member("east", { delegate: forged }),
  ];
  const { actions, requeueAt } = decide(world(proxy, members), now);
  expect(actions.map(({ type }) => type)).toEqual(["status", "sweep"]);
  expect(requeueAt).toBe(now + 10_000);
});

describe("a bound proxy", () => {
  test("gets its own delegate's status, and forwards to it, before it deletes one in another member", () => {
    const proxy = boundProxy({ metadata: { labels: { changed: "yes" } } });
    const west = member("west", { delegate: delegateOf(boundProxy(), { status: runningStatus() }) });
    const east = member("east", { delegate: delegateOf(proxy, { uid: "forged" }) });
    const { actions } = decide(world(proxy, [east, west]), now);
    expect(names(actions)).toEqual(["status", "forward west", "delete east"]);
  });
});
