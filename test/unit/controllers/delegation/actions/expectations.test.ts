import { describe, expect, test } from "vitest";
import { DELEGATE_FINALIZER } from "../../../../../src/api/keys.ts";
import {
  expectChanged,
  expectDeleted,
  expectFinalizerRemoved,
  isAtLeast,
  unlessForced,
} from "../../../../../src/controllers/delegation/actions/expectations.ts";
import { pod, proxyPod } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, member, world } from "../world.ts";

describe("a released proxy", () => {
  const deleting = { deletionTimestamp: "2026-02-03T04:05:00Z" };
  test.each([
    ["is shown when it is gone", undefined, true],
    ["is shown when another pod has its name", proxyPod({ uid: "uid-2" }), true],
    ["is shown when only others' finalizers are left", proxyPod({ metadata: { finalizers: ["other.dev/x"] } }), true],
    ["is not shown while it has the finalizer, whatever its version", proxyPod({ metadata: deleting }), false],
    [
      "is not shown while it has the finalizer beside others",
      proxyPod({ metadata: { finalizers: ["other.dev/x", DELEGATE_FINALIZER] } }),
      false,
    ],
  ])("%s", (_name, proxy, expected) => {
    expect(expectFinalizerRemoved("uid-1")(world(proxy, []))).toBe(expected);
  });
});

describe("a deleted delegate", () => {
  const proxy = boundProxy();
  const asked = (deletionGracePeriodSeconds: number) =>
    delegateOf(proxy, { metadata: { deletionTimestamp: "2026-02-03T04:05:00Z", deletionGracePeriodSeconds } });
  test.each([
    ["is shown when it is gone", {}, 0, true],
    ["is not shown before its deletion is", { delegate: delegateOf(proxy) }, undefined, false],
    ["is shown while it ends", { delegate: asked(30) }, undefined, true],
    ["is not shown while the longer grace period holds", { delegate: asked(30) }, 5, false],
    ["is shown with the shorter grace period", { delegate: asked(5) }, 5, true],
  ])("%s", (_name, parts, graceSeconds, expected) => {
    expect(expectDeleted("west", "delegate-uid", graceSeconds)(world(proxy, [member("west", parts)]))).toBe(expected);
  });
});

test("a write that is not shown yet holds up a graceful deletion, and none by force", () => {
  const unshown = unlessForced(() => false);
  const deleting = (deletionGracePeriodSeconds: number) =>
    boundProxy({ metadata: { deletionTimestamp: "2026-02-03T04:05:00Z", deletionGracePeriodSeconds } });
  const held = [undefined, boundProxy(), deleting(30), deleting(0)].map((proxy) => !unshown(world(proxy, [])));
  expect(held).toEqual([true, true, true, false]);
});

describe("a delegate that was not in the expected version", () => {
  const proxy = boundProxy();
  test.each([
    ["is shown when it is gone", undefined, true],
    ["is shown when another pod has its name", { uid: "other" }, true],
    ["is shown in a newer version", { resourceVersion: "2" }, true],
    ["is not shown in the version that was expected", { resourceVersion: "1" }, false],
  ])("%s", (_name, metadata, expected) => {
    const { uid, ...rest } = { uid: "delegate-uid", ...metadata };
    const parts = metadata === undefined ? {} : { delegate: delegateOf(proxy, { uid, metadata: rest }) };
    expect(expectChanged("west", "delegate-uid", "1")(world(proxy, [member("west", parts)]))).toBe(expected);
  });
});

test.each([
  ["9", "10", false],
  ["10", "9", true],
  ["10", "10", true],
  ["11", "10", true],
])("version %s is at least %s: %s", (own, version, expected) => {
  expect(isAtLeast(pod({ metadata: { resourceVersion: own } }), version)).toBe(expected);
});
