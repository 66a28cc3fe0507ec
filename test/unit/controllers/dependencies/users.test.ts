import { beforeEach, describe, expect, test } from "vitest";
import type { Pod, PodSpec, Stored } from "../../../../src/api/kubernetes.ts";
import { Users } from "../../../../src/controllers/dependencies/users.ts";
import { dependencyKey, FAMILIES } from "../../../../src/copies/named-by-pods.ts";
import { toDelegate } from "../../../../src/pods/delegate.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { endedStatus, pod, proxyPod } from "../../../support/builders/pod.ts";

const key = dependencyKey({ kind: "Secret", namespace: "team", name: "a" });
const other = dependencyKey({ kind: "Secret", namespace: "team", name: "b" });
const refIn = (member: string) => ({ member, kind: "Secret", namespace: "team", name: "a" });
const spec: Partial<PodSpec> = { volumes: [{ name: "v", secret: { secretName: "a" } }] };
const inWest = { ...spec, nodeName: "legation-west" };

let proxies: Store<Pod>;
let users: Users;
beforeEach(() => {
  proxies = new Store<Pod>();
  users = new Users(proxies, FAMILIES.dependencies.of);
});

function member(name: string, ...delegates: Stored<Pod>[]) {
  return { name, delegates: { unfinished: () => delegates, countUnfinished: () => delegates.length } };
}

describe("an object", () => {
  test("is used by a proxy that is bound to the member, until that has ended", () => {
    proxies.set(proxyPod({ spec: inWest }));
    expect(users.uses(member("west"), key)).toBe(true);
    expect(users.uses(member("east"), key)).toBe(false);
    expect(users.uses(member("west"), other)).toBe(false);
    proxies.set(proxyPod({ spec: inWest, status: endedStatus(0) }));
    expect(users.uses(member("west"), key)).toBe(false);
  });

  test("is used by a proxy on its way to the member, which is on its way to one member only", () => {
    const proxy = proxyPod({ spec });
    proxies.set(proxy);
    expect(users.place(proxy, "west", 0)).toEqual([refIn("west")]);
    expect(users.uses(member("west"), key)).toBe(true);
    expect(users.place(proxy, "east", 0)).toEqual([refIn("west"), refIn("east")]);
    expect(users.uses(member("west"), key)).toBe(false);
    expect(users.placedIn("east")).toEqual([refIn("east")]);
    expect(users.forget("uid-1")).toEqual([refIn("east")]);
    expect(users.uses(member("east"), key)).toBe(false);
  });

  test("is in use by another pod that is on its way to the member, if that is not long ago", () => {
    const proxy = proxyPod({ spec });
    proxies.set(proxy);
    users.place(proxy, "west", 1_000);
    const isOther = () => true;
    const isUsed = (name: string, since: number, isAnother = isOther) =>
      users.isUsedBy(member(name), key, { isOther: isAnother, since });
    expect([isUsed("west", 1_000), isUsed("west", 1_001), isUsed("east", 0)]).toEqual([true, false, false]);
    expect(isUsed("west", 0, () => false)).toBe(false);
    proxies.set(proxyPod({ spec: inWest }));
    expect(isUsed("west", 2_000)).toBe(true);
  });

  test("is required by a pod on its way to the member that cannot do without", () => {
    const optional = { volumes: [{ name: "v", secret: { secretName: "a", optional: true } }] };
    const [can, cannot] = [proxyPod({ spec: optional }), proxyPod({ name: "web-1", uid: "uid-2", spec })];
    proxies.set(can);
    proxies.set(cannot);
    users.place(can, "west", 0);
    users.place(cannot, "east", 0);
    expect(["west", "east"].map((name) => users.requires(member(name), key))).toEqual([false, true]);
  });

  test("is used by a delegate of an earlier leader whose proxy has no node yet", () => {
    const proxy = proxyPod({ spec });
    proxies.set(proxy);
    const { metadata } = toDelegate(proxy, { id: "host-id", name: "cern" });
    const delegate = pod({ uid: "delegate-uid", metadata: { ...metadata, name: "web-0" }, spec });
    expect(users.uses(member("west", delegate), key)).toBe(true);
    // A delegate cannot add objects that its proxy does not name.
    expect(users.uses(member("west", delegate), other)).toBe(false);
    expect(users.requires(member("west", delegate), key)).toBe(true);
    // A member that shows the delegate of a proxy elsewhere gets nothing.
    proxies.set(proxyPod({ spec: { ...spec, nodeName: "legation-east" } }));
    expect(users.uses(member("west", delegate), key)).toBe(false);
    expect(users.requires(member("west", delegate), key)).toBe(false);
    proxies.set(proxyPod({ uid: "uid-2", spec }));
    expect(users.uses(member("west", delegate), key)).toBe(false);
  });
});

test("reports objects that proxies without a node wait for, and kinds in use per namespace", () => {
  proxies.set(proxyPod({ spec }));
  expect(users.waitingFor(key)).toEqual(["team/web-0"]);
  expect(users.anyIn("Secret", "team")).toBe(true);
  expect(users.anyIn("ConfigMap", "team")).toBe(false);
  expect(users.anyIn("Secret", "tea")).toBe(false);
  proxies.set(proxyPod({ spec: inWest }));
  expect(users.waitingFor(key)).toEqual([]);
});
