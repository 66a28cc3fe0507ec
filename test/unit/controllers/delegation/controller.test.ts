import { afterEach, beforeEach, describe, expect, type Mock, test, vi } from "vitest";
import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION } from "../../../../src/api/keys.ts";
import { type KubeNode, type ObjectKey, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { DelegateRequests } from "../../../../src/clusters/delegate-requests.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { DelegationController } from "../../../../src/controllers/delegation/controller.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { reflectProxies } from "../../../../src/controllers/proxies.ts";
import { RefusedWrites } from "../../../../src/controllers/refused-writes.ts";
import type { WatchOptions } from "../../../../src/kube/client.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { proxyWrites } from "../../../../src/scheduling/memories.ts";
import { Reservations } from "../../../../src/scheduling/reservations.ts";
import { WaitingProxies } from "../../../../src/scheduling/retries/waiting-proxies.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { cluster, delegates, member, withState } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { namespacesThere, registryOf } from "../fleet.ts";
import { delegateOf } from "./world.ts";

const nothing = (): void => {};
const proxy = proxyPod({ metadata: { annotations: { "legation.dev/api": "none" } } });
const team = { metadata: { name: "team", uid: "n", resourceVersion: "1" } };

let clock: FakeClock;
/** Events that the host's watch of proxies has not delivered yet. */
let events: object[];
let heard: PromiseWithResolvers<void>;
let created: string[];
let deleted: string[];
/** The code with which members refuse creates. */
let code: "Forbidden" | "ServerError";
/** The pod that east still has under the name. */
let stale: Stored<Pod> | undefined;
/** Reads in members, in order, with their pending answers. */
let asked: { readonly name: string; readonly answer: PromiseWithResolvers<undefined> }[];
/** Keys whose delegates were looked for, in order. */
let looked: ObjectKey[];
let controller: DelegationController;
let emitter: Events<ControllerEvents>;
let west: Member;
/** Why west refuses creates. Undefined: it does not answer them. */
let refuses: string | undefined;
/** Called when pods that are no proxies yet may be placed. */
let onRoom: Mock<() => void>;

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
}

/** Returns a member that does not answer creates; it has been read unless a test changes that. */
function memberOf(name: string) {
  const size = { cpu: 8, pods: 100 };
  const open = { name, labels: {}, allocatable: size, largestNode: size, used: {} };
  const closed = { reason: "ClusterNotReady", message: "its pods and nodes are still being read" } as const;
  const client = fakeClient({
    create: (_resource, _object, { signal } = {}): Promise<never> => {
      created.push(name);
      if (name !== "west" || refuses === undefined) return untilAborted(signal);
      return Promise.reject(kubeError(code, refuses, { cluster: name }));
    },
    delete: async () => {
      deleted.push(name);
    },
    find: (_resource, _ref, { signal } = {}) => {
      const answer = Promise.withResolvers<undefined>();
      asked.push({ name, answer });
      return Promise.race([answer.promise, untilAborted(signal)]);
    },
  });
  const made: Member = member(name, client, {
    cluster: cluster(name, { status: { version: "v1.36.0" } }),
    nodesRead: true,
    nodesVersion: 1,
    roomVersion: "1.0",
    probed: { reachable: true, version: "v1.36.0" },
    unreadable: {},
    requests: new DelegateRequests(),
    delegates: delegates({
      get: (key) => {
        looked.push(key);
        return name === "east" ? stale : undefined;
      },
    }),
    candidate: () => ({ ...open, ...(made.read ? {} : { closed }) }),
  });
  return made;
}

beforeEach(() => {
  clock = new FakeClock();
  events = [];
  heard = Promise.withResolvers();
  created = [];
  deleted = [];
  code = "Forbidden";
  refuses = undefined;
  stale = undefined;
  asked = [];
  looked = [];
  onRoom = vi.fn<() => void>();
});
afterEach(() => {
  vi.restoreAllMocks();
  return controller.stop();
});

/** Returns a controller with these members, which finds these proxies when it begins to lead. */
async function runWhileLeading(
  names: readonly string[] = ["west"],
  inherited: readonly Stored<Pod>[] = [],
): Promise<void> {
  const members = names.map(memberOf);
  west = members.find(({ name }) => name === "west") ?? memberOf("west");
  const host = fakeClient({
    // The host serves no optional type.
    raw: async () => ({ groups: [] }),
    list: async ({ plural }: { readonly plural: string }) => {
      const items: Readonly<Record<string, readonly object[]>> = { namespaces: [team], pods: inherited };
      return { items: items[plural] ?? [], resourceVersion: "1", size: 0 };
    },
    watch: async function* ({ plural }: { readonly plural: string }, { onOpen, signal }: WatchOptions) {
      onOpen?.();
      while (plural === "pods") {
        yield* events.splice(0);
        await Promise.race([heard.promise, untilAborted(signal)]);
      }
      await untilAborted(signal);
    },
    patch: async () => proxy,
    find: async () => proxy,
  });
  emitter = new Events();
  for (const name of ["roomFreed", "placesChanged", "groupMoved"] as const) emitter.on(name, onRoom);
  const log = createLogger({ level: "silent" });
  const proxies = reflectProxies({ host, onEvent: (event) => emitter.emit("proxy", event), clock, log });
  const recorder = { record: nothing };
  controller = new DelegationController({
    host,
    everywhere: undefined,
    identity: { id: "host-id", name: "cern" },
    registry: registryOf(members),
    preparer: { needs: () => undefined, prepare: () => true },
    memberNamespaces: { ...namespacesThere, controllersOf: async () => [] },
    virtualNodes: new Store<KubeNode>(),
    recorder,
    restoredHost: { confirm: async () => {} },
    kept: { keeps: () => false },
    refusedWrites: new RefusedWrites({ writes: proxyWrites(clock), recorder, events: emitter }),
    events: emitter,
    proxies,
    homeApi: () => ({ state: "unknown", message: "" }),
    clock,
    log,
  });
  const { signal } = new AbortController();
  await controller.read(signal);
  await controller.start(signal);
}

/** Delivers an event of a proxy while the controller leads. */
async function proxyComes(object: Stored<Pod>, type = "ADDED"): Promise<void> {
  events.push({ type, object, size: 0 });
  heard.resolve();
  heard = Promise.withResolvers();
  await clock.advance(1_000);
}

test("keeps a Cluster while a delegate is being created in its member", async () => {
  await runWhileLeading();
  expect(controller.waitingIn("west")).toBe(0);
  await proxyComes(proxy);
  expect(created).toEqual(["west"]);
  expect(controller.waitingIn("west")).toBe(1);
});

test("looks at pods that wait before those that run, when it begins to lead", async () => {
  const running = ["a", "b", "c"].map((name) =>
    proxyPod({ metadata: { name, uid: name }, spec: { nodeName: "legation-west" } }),
  );
  await runWhileLeading(["west"], [...running, proxy]);
  expect(looked).toEqual([]);
  await clock.advance(1_000);
  expect(looked[0]).toBe(objectKey(proxy.metadata));
  expect(new Set(looked).size).toBe(4);
});

test("counts a member at another address as one that may have the delegates of all waiting pods, until it is read", async () => {
  await runWhileLeading();
  withState(west, { read: false });
  await proxyComes(proxy);
  expect(created).toEqual([]);
  expect(controller.waitingIn("west")).toBe(0);
  emitter.emit("reconnected", "west");
  expect(controller.waitingIn("west")).toBe(1);
});

test("asks all members at once for a pod of an earlier leader, and notes answers while one hangs", async () => {
  await runWhileLeading(["west", "east", "north"], [proxy]);
  await vi.waitFor(() => expect(asked.map(({ name }) => name)).toEqual(["west", "east", "north"]));
  const [hangs, ...others] = asked;
  for (const { answer } of others) answer.resolve(undefined);
  await clock.advance(1_000);
  expect(created).toEqual([]);
  hangs?.answer.reject(kubeError("AnswerLost", "no answer", { verb: "get" }));
  await clock.advance(1_000);
  expect(asked.slice(3).map(({ name }) => name)).toEqual(["west"]);
  asked[3]?.answer.resolve(undefined);
  await vi.waitFor(() => expect(created).toHaveLength(1));
});

test.each([
  ["its delegate", {}, "west"],
  ["not a copy of its delegate under another name", { name: "copy" }, undefined],
  ["not a delegate that is being deleted without a node", { deletionTimestamp: "2026-01-01T00:00:00Z" }, undefined],
])("counts a proxy in the member that shows %s", async (_, metadata, expected) => {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web", controller: true };
  const owned = proxyPod({ metadata: { ...proxy.metadata, ownerReferences: [owner] } });
  await runWhileLeading([]);
  await proxyComes(owned);
  const made = delegateOf(owned);
  const shown: Stored<Pod> = { ...made, metadata: { ...made.metadata, ...metadata } };
  const shows = member("west", fakeClient({}), { delegates: delegates({ get: () => shown }) });
  emitter.emit("delegate", shows, objectKey(shown.metadata));
  expect(controller.placementState.divisions.proxies.get(owned.metadata.uid)?.member).toBe(expected);
});

test("wakes pods that waited for the answer to one of their shape when that pod has gone", async () => {
  await runWhileLeading();
  await proxyComes(proxy);
  const told = vi.fn<() => void>();
  emitter.on("roomFreed", told);
  const end = vi.spyOn(Reservations.prototype, "end").mockReturnValueOnce(true);
  await proxyComes(proxy, "DELETED");
  expect(end).toHaveBeenCalledWith(proxy.metadata.uid);
  expect(told).toHaveBeenCalledOnce();
});

describe("pods that wait for an even spread or for a limit", () => {
  const gated = proxyPod({ spec: { schedulingGates: [{ name: "example.com/quota" }] } });
  const changed = (parts: Pick<Pod, "metadata" | "status">): Stored<Pod> => ({
    ...gated,
    ...parts,
    metadata: { ...gated.metadata, resourceVersion: "2", ...parts.metadata },
  });

  test.each<[string, string, Stored<Pod>, number]>([
    ["are woken when another one has ended", "MODIFIED", changed({ status: { phase: "Failed" } }), 1],
    ["is being deleted", "MODIFIED", changed({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }), 1],
    ["are woken when another one is gone", "DELETED", changed({}), 1],
    [
      "are not woken when another one has only changed",
      "MODIFIED",
      changed({ metadata: { labels: { ...gated.metadata.labels, a: "b" } } }),
      0,
    ],
  ])("%s", async (_, type, object, times) => {
    await runWhileLeading();
    await proxyComes(gated);
    const onPlaces = vi.spyOn(WaitingProxies.prototype, "onPlaces");
    await proxyComes(object, type);
    expect(onPlaces).toHaveBeenCalledTimes(times);
    expect(onRoom).toHaveBeenCalledTimes(times);
    // The deletion after the end is no news.
    if (type === "MODIFIED" && times > 0)
      await proxyComes({ ...object, metadata: { ...object.metadata, resourceVersion: "3" } }, "DELETED");
    expect(onPlaces).toHaveBeenCalledTimes(times);
  });
});

describe("a pod that a quota had no room for", () => {
  const other = delegateOf(proxyPod({ name: "other", uid: "other" }));
  const bound = proxyPod({
    metadata: { annotations: { [CLUSTER_ANNOTATION]: "west", [DELEGATE_UID_ANNOTATION]: "delegate-uid" } },
    spec: { nodeName: "legation-west" },
  });
  const full = 'pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1';

  beforeEach(async () => {
    await runWhileLeading();
    refuses = full;
    await proxyComes(proxy);
    await clock.advance(10_000);
    expect(created).toEqual(["west"]);
  });

  test("is tried again when another one has ended there, and otherwise not before its backoff ends", async () => {
    await clock.advance(10_000);
    expect(created).toEqual(["west"]);
    emitter.emit("ended", west, other);
    await clock.advance(1_000);
    expect(created).toEqual(["west", "west"]);
  });

  test.each([
    ["is gone", proxy, "DELETED"],
    ["is bound", bound, "MODIFIED"],
  ])("does not wait for it any more when it %s", async (_, { metadata, ...rest }, type) => {
    await proxyComes({ ...rest, metadata: { ...metadata, resourceVersion: "2" } } as Stored<Pod>, type);
    const { pending } = clock;
    emitter.emit("ended", west, other);
    expect(clock.pending).toBe(pending);
  });

  test("is tried again although it has overflowed and is bound to the member", async () => {
    await controller.stop();
    created = [];
    await runWhileLeading();
    refuses = full;
    const overflowed = proxyPod({
      metadata: { annotations: { "legation.dev/api": "none", [CLUSTER_ANNOTATION]: "west" } },
      spec: { nodeName: "legation-west", schedulerName: "default-scheduler" },
    });
    await proxyComes(overflowed);
    await clock.advance(10_000);
    expect(created).toEqual(["west"]);
    // The controller's own condition comes back by the host's watch.
    await proxyComes({ ...overflowed, metadata: { ...overflowed.metadata, resourceVersion: "2" } }, "MODIFIED");
    emitter.emit("ended", west, other);
    await clock.advance(1_000);
    expect(created).toEqual(["west", "west"]);
  });

  test("is not tried any more when the controller has ended", async () => {
    emitter.emit("ended", west, other);
    await controller.stop();
    await clock.advance(60_000);
    expect(created).toEqual(["west"]);
  });
});

test("wakes pods in overflow mode when the group that they wait for has no member any more", async () => {
  const first = proxyPod({
    metadata: { annotations: { "legation.dev/group": "a" } },
    spec: { schedulingGates: [{ name: "example.com/quota" }] },
  });
  await runWhileLeading();
  await proxyComes(first);
  expect(onRoom).not.toHaveBeenCalled();
  const shows = member("west", fakeClient({}), { delegates: delegates({ get: () => delegateOf(first) }) });
  emitter.emit("delegate", shows, objectKey(first.metadata));
  // The member itself has none by then.
  await clock.advance(1_000);
  expect(onRoom).toHaveBeenCalledOnce();
});

describe("the memory of a pod's search for a member", () => {
  const boundWith = (annotations: Record<string, string>): Stored<Pod> => ({
    ...proxy,
    metadata: {
      ...proxy.metadata,
      resourceVersion: "2",
      annotations: { ...proxy.metadata.annotations, [CLUSTER_ANNOTATION]: "west", ...annotations },
    },
    spec: { containers: [], ...proxy.spec, nodeName: "legation-west" },
  });
  const bound = boundWith({ [DELEGATE_UID_ANNOTATION]: "delegate-uid" });

  test("ends when the pod is seen with its node, whatever became of the Binding's response", async () => {
    await runWhileLeading();
    await proxyComes(proxy);
    const noteBound = vi.spyOn(Reservations.prototype, "noteBound");
    await proxyComes(bound, "MODIFIED");
    expect(noteBound.mock.calls).toEqual([[proxy.metadata.uid, "west", expect.anything()]]);
    await proxyComes({ ...bound, metadata: { ...bound.metadata, resourceVersion: "3" } }, "MODIFIED");
    expect(noteBound).toHaveBeenCalledTimes(1);
  });

  test("stays for a pod that has its node before its delegate, until the delegate is recorded", async () => {
    await runWhileLeading();
    await proxyComes(proxy);
    const noteBound = vi.spyOn(Reservations.prototype, "noteBound");
    await proxyComes(boundWith({}), "MODIFIED");
    expect(noteBound).not.toHaveBeenCalled();
    await proxyComes({ ...bound, metadata: { ...bound.metadata, resourceVersion: "3" } }, "MODIFIED");
    expect(noteBound.mock.calls).toEqual([[proxy.metadata.uid, "west", expect.anything()]]);
  });
});

test.each<[string, typeof code, string]>([
  ["is refused", "Forbidden", "a policy is against it"],
  ["fails each time", "ServerError", "etcdserver: request timed out"],
])(
  "removes the delegate of an earlier pod of the name from a member that returns, though the next create %s",
  async (_, as, words) => {
    stale = delegateOf(proxyPod({ uid: "first" }), { spec: { nodeName: "node-1" } });
    code = as;
    await runWhileLeading(["west", "east"]);
    refuses = words;
    const annotations = { "legation.dev/api": "none", "legation.dev/clusters": "west" };
    await proxyComes({ ...proxy, metadata: { ...proxy.metadata, annotations } });
    await clock.advance(600_000);
    expect(created.length).toBeGreaterThan(0);
    expect(deleted).toContain("east");
  },
);
