import { describe, expect, test } from "vitest";
import { RENEW_AT_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Pod, Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { decide, renewalAge } from "../../../../src/controllers/home-api/decide.ts";
import type { DelegateView } from "../../../../src/controllers/home-api/model.ts";
import { toDelegate } from "../../../../src/pods/delegate.ts";
import type { ApiAccess } from "../../../../src/pods/home-api.ts";
import { endedStatus, type PodParts, pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const host = { id: "host-id", name: "cern" };
const home: ApiAccess = { mode: "host", address: { host: "10.0.0.1", port: "443" } };
const volumes = [{ name: "kube-api-access-x", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }];

/** Returns a proxy that is bound to west by default. */
function proxy(parts: PodParts = {}): Stored<Pod> {
  return proxyPod({ ...parts, spec: { volumes, nodeName: "legation-west", ...parts.spec } });
}

function unboundProxy(): Stored<Pod> {
  return proxyPod({ spec: { volumes } });
}

function view(of: Stored<Pod>, parts: Partial<DelegateView> = {}, access: ApiAccess = home): DelegateView {
  const { metadata, spec } = toDelegate(of, host, access);
  const delegate = pod({ uid: "delegate-uid", metadata: { ...metadata, uid: "delegate-uid" }, ...(spec && { spec }) });
  return { member: "west", readable: true, delegate, ...parts };
}

function unowned({ delegate: { metadata, ...rest }, ...of }: DelegateView): DelegateView {
  return { ...of, delegate: { ...rest, metadata: { ...metadata, annotations: {} } } };
}

function secret(renewAt: number | undefined, owner = "delegate-uid"): Stored<Secret> {
  const annotations = renewAt === undefined ? {} : { [RENEW_AT_ANNOTATION]: new Date(renewAt).toISOString() };
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "web-0", uid: owner }];
  return { metadata: { name: "s", uid: "secret-uid", resourceVersion: "7", annotations, ownerReferences } };
}

function decided(of: Stored<Pod>, ...delegates: DelegateView[]): ReturnType<typeof decide> {
  return decide({ proxy: of, delegates }, NOW);
}

const issue = { type: "issue", member: "west", delegateUid: "delegate-uid" };
const replaces = { uid: "secret-uid", resourceVersion: "7" };

describe("a delegate that mounts tokens of its proxy", () => {
  test("gets them when its proxy is bound to its member", () => {
    const of = proxy();
    expect(decided(of, view(of))).toEqual({ actions: [{ ...issue, proxy: of }], outcome: "Issuing" });
  });

  test("keeps them until their renewal is due, and is looked at again then", () => {
    const of = proxy();
    const found = decided(of, view(of, { secret: secret(NOW + MINUTE) }));
    expect(found).toEqual({ actions: [], outcome: "Valid", requeueAt: NOW + MINUTE });
  });

  test.each([
    ["they are due", secret(NOW)],
    ["they are overdue", secret(NOW - MINUTE)],
    ["their time is unknown", secret(undefined)],
    ["they belong to an earlier delegate", secret(NOW + MINUTE, "earlier")],
  ])("gets new ones in the same Secret when %s", (_, found) => {
    const of = proxy();
    const { actions } = decided(of, view(of, { secret: found }));
    expect(actions).toEqual([{ ...issue, proxy: of, replaces }]);
  });

  test.each<[string, Stored<Pod>, (of: Stored<Pod>) => DelegateView]>([
    ["whose member does not answer", proxy(), (of) => view(of, { readable: false })],
    ["that has ended", proxy(), (of) => ended(view(of))],
    ["of a proxy that has ended", proxy({ status: endedStatus(0) }), view],
    ["that is being deleted", proxy(), (of) => deleting(view(of))],
    ["that mounts none", proxy(), (of) => view(of, {}, { mode: "none" })],
    ["that talks to its member's API server", proxy(), (of) => view(of, {}, { mode: "member" })],
    ["that does not say whose it is", proxy(), (of) => unowned(view(of))],
    ["whose proxy is not bound yet", unboundProxy(), view],
    ["of another proxy", proxy({ uid: "uid-2" }), () => view(proxy())],
    ["in another member than its proxy was given to", proxy({ spec: { nodeName: "legation-east" } }), view],
    ["of a proxy that a node of the host has", proxy({ spec: { nodeName: "west" } }), view],
  ])("gets none, and no new ones: %s", (_, of, make) => {
    const without = make(of);
    expect(decided(of, without)).toEqual({ actions: [], outcome: "Idle" });
    expect(decided(of, { ...without, secret: secret(NOW - MINUTE) })).toEqual({ actions: [], outcome: "Idle" });
  });

  test("gets new ones, but no first ones, while its proxy is being deleted and its containers end", () => {
    const of = proxy({ status: runningStatus(), metadata: { deletionTimestamp: "2026-01-01T00:10:00Z" } });
    expect(decided(of, view(of, { secret: secret(NOW) })).actions).toHaveLength(1);
    // The pod's Secret goes before the delegate is seen to be gone.
    expect(decided(of, view(of)).actions).toEqual([]);
  });

  test("does not get them while a refusal is recent", () => {
    const of = proxy();
    const observed = { proxy: of, delegates: [view(of)], notBefore: NOW + MINUTE };
    expect(decide(observed, NOW)).toEqual({ actions: [], outcome: "Valid", requeueAt: NOW + MINUTE });
    expect(decide(observed, NOW + MINUTE).actions).toHaveLength(1);
  });

  test("gets them in the member that its proxy is bound to, and in no other", () => {
    const of = proxy({ spec: { nodeName: "legation-east" } });
    const { actions } = decided(of, view(of), view(of, { member: "east" }));
    expect(actions).toEqual([{ ...issue, member: "east", proxy: of }]);
  });
});

test("reports a pod that has no token against its author's choice", () => {
  const of = proxy();
  const untold = { member: "west", message: "no way" };
  const observed = { proxy: of, delegates: [view(of, {}, { mode: "none" })], untold };
  expect(decide(observed, NOW).actions).toEqual([{ type: "tell", proxyUid: "uid-1", ...untold }]);
});

const issuedFor = (ms: number): NonNullable<Parameters<typeof decide>[0]["issued"]> => ({
  delegateUid: "delegate-uid",
  renewAt: NOW + ms,
  renewAtWall: NOW + ms,
  noted: new Date(NOW + ms).toISOString(),
});

describe("the renewal of tokens", () => {
  test.each([
    ["is due at 80 % of an hour", 60 * MINUTE, 0, 48 * MINUTE],
    ["is due up to a tenth of that earlier", 60 * MINUTE, 1, 43.2 * MINUTE],
    ["is due at 80 % of the shortest lifetime", 10 * MINUTE, 0, 8 * MINUTE],
    ["is due after a day at the latest", 365 * 24 * 60 * MINUTE, 0, 24 * 60 * MINUTE],
  ])("%s", (_, life, random, age) => {
    expect(renewalAge(life, random)).toBe(age);
  });

  const of = proxy();
  const observed = {
    proxy: of,
    delegates: [view(of, { secret: secret(NOW + 40 * MINUTE) })],
    issued: issuedFor(40 * MINUTE),
  };

  test.each([
    [
      "ahead of the host's by an hour when they were issued",
      { ...observed, issued: { ...observed.issued, renewAtWall: NOW + 100 * MINUTE } },
      60,
    ],
    ["set back by an hour since", observed, -60],
  ])("counts by the process's own clock since the issue, when the machine's clock is %s", (_, seen, ahead) => {
    const jump = ahead * MINUTE;
    expect(decide(seen, NOW, NOW + jump)).toMatchObject({ actions: [], requeueAt: NOW + 40 * MINUTE });
    expect(decide(seen, NOW + 41 * MINUTE, NOW + 41 * MINUTE + jump).actions).toMatchObject([{ type: "issue" }]);
  });

  test.each([
    ["is due at once", 50, { outcome: "Issuing" }],
    ["comes that much earlier", 30, { actions: [], requeueAt: NOW + 10 * MINUTE }],
  ])("counts the time of a suspended machine: %s", (_, asleep, expected) => {
    expect(decide(observed, NOW + MINUTE, NOW + (1 + asleep) * MINUTE)).toMatchObject(expected);
  });

  test("is due when a client writes another time into their Secret", () => {
    const of = proxy();
    const delegates = [view(of, { secret: secret(NOW - MINUTE) })];
    const observed = { proxy: of, delegates, issued: issuedFor(40 * MINUTE) };
    expect(decide(observed, NOW).actions).toMatchObject([{ type: "issue" }]);
  });
});

function ended(of: DelegateView): DelegateView {
  return { ...of, delegate: { ...of.delegate, status: endedStatus(1) } };
}

function deleting({ delegate, ...of }: DelegateView): DelegateView {
  const metadata = { ...delegate.metadata, deletionTimestamp: "2026-01-01T00:10:00Z" };
  return { ...of, delegate: { ...delegate, metadata } };
}
