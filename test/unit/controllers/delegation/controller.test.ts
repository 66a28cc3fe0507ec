import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { Load } from "../../../../src/clusters/load.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { DelegationController } from "../../../../src/controllers/delegation/controller.ts";
import type { WatchEvent, WatchOptions } from "../../../../src/kube/client.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../../cli/client.ts";
import { delegateOf } from "./world.ts";

const nothing = (): void => {};
const proxy = proxyPod({ metadata: { annotations: { "legation.dev/api": "none" } } });
const team = { metadata: { name: "team", uid: "n", resourceVersion: "1" } };

let clock: FakeClock;
let started: PromiseWithResolvers<WatchEvent<Pod>>;
let created: string[];
/** What members answer that are asked for a pod, in the order in which they were. */
let asked: { readonly name: string; readonly answer: PromiseWithResolvers<undefined> }[];
let controller: DelegationController;
let west: { read: boolean };

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
}

/** A member that does not answer creations; it has been read unless a test says otherwise. */
function memberOf(name: string) {
  const size = { cpu: 8, pods: 100 };
  const open = { name, labels: {}, allocatable: size, largestNode: size, used: {} };
  const closed = { reason: "ClusterNotReady", message: "its pods and nodes are still being read" };
  const member = {
    name,
    cluster: { metadata: { name, uid: "c" }, spec: {}, status: { version: "v1.36.0" } },
    read: true,
    reachable: true,
    nodesRead: true,
    reachableSince: 0,
    nodesVersion: 1,
    roomVersion: "1.0",
    probed: { reachable: true, version: "v1.36.0" },
    unreadable: {},
    load: new Load(),
    delegates: { get: nothing, departed: nothing, list: () => [] },
    candidate: () => ({ ...open, ...(member.read ? {} : { closed }) }),
    answerOf: (answer: Promise<unknown>) => answer,
    noteFailure: nothing,
    client: fakeClient({
      create: (_resource, _object, { signal } = {}) => {
        created.push(name);
        return untilAborted(signal);
      },
      find: ((_resource: unknown, _ref: unknown, { signal }: { readonly signal: AbortSignal }) => {
        const answer = Promise.withResolvers<undefined>();
        asked.push({ name, answer });
        return Promise.race([answer.promise, untilAborted(signal)]);
      }) as never,
    }),
  };
  return member;
}

beforeEach(() => {
  clock = new FakeClock();
  started = Promise.withResolvers();
  created = [];
  asked = [];
});
afterEach(() => controller.stop());

/** A controller with these members, which finds these proxies when it begins to lead. */
async function lead(names: readonly string[] = ["west"], inherited: readonly Stored<Pod>[] = []): Promise<void> {
  const members = new Map(names.map((name) => [name, memberOf(name)]));
  west = members.get("west") ?? memberOf("west");
  const host = fakeClient({
    list: (async ({ plural }: { readonly plural: string }) => {
      const items: Readonly<Record<string, readonly object[]>> = { namespaces: [team], pods: inherited };
      return { items: items[plural] ?? [], resourceVersion: "1", size: 0 };
    }) as never,
    watch: async function* ({ plural }: { readonly plural: string }, { onOpen, signal }: WatchOptions) {
      onOpen?.();
      if (plural === "pods") yield await Promise.race([started.promise, untilAborted(signal)]);
      await untilAborted(signal);
    } as never,
    patch: (async () => proxy) as never,
  });
  const registry = {
    cluster: (name: string) => members.get(name)?.cluster,
    member: (name: string) => members.get(name),
    members: () => [...members.values()],
    unconnected: () => [],
    holders: () => [],
    forget: nothing,
  };
  controller = new DelegationController({
    host,
    identity: { id: "host-id", name: "cern" },
    registry,
    dependencies: { needs: nothing, prepare: () => true, onProxy: nothing },
    memberNamespaces: { createIn: (_member: unknown, _name: string, _signal: unknown, make: () => unknown) => make() },
    virtualNodes: { get: nothing },
    authorEvents: { tell: nothing },
    unled: [],
    confirmLease: async () => true,
    homeApi: () => ({ state: "unknown", message: "" }),
    onBound: nothing,
    onProxy: nothing,
    onDefaults: nothing,
    clock,
    log: createLogger({ level: "silent" }),
  } as never);
  await controller.start(new AbortController().signal);
}

/** A proxy that comes to be while the controller leads. */
async function proxyComes(object: Stored<Pod>): Promise<void> {
  started.resolve({ type: "ADDED", object, size: 0 });
  await clock.advance(1_000);
}

test("a Cluster stays while a delegate is being created in its member", async () => {
  await lead();
  expect(controller.waitingIn("west")).toBe(0);
  await proxyComes(proxy);
  expect(created).toEqual(["west"]);
  expect(controller.waitingIn("west")).toBe(1);
});

test("a member that is reached at another address may have the delegates of all that wait, until it is read", async () => {
  await lead();
  west.read = false;
  await proxyComes(proxy);
  expect(created).toEqual([]);
  expect(controller.waitingIn("west")).toBe(0);
  controller.onReconnected("west");
  expect(controller.waitingIn("west")).toBe(1);
});

test("a pod of an earlier leader is asked for in all members at once: one that hangs keeps no other's answer", async () => {
  await lead(["west", "east", "north"], [proxy]);
  await vi.waitFor(() => expect(asked.map(({ name }) => name)).toEqual(["west", "east", "north"]));
  const [hangs, ...others] = asked;
  for (const { answer } of others) answer.resolve(undefined);
  await clock.advance(1_000);
  expect(created).toEqual([]);
  hangs?.answer.reject(
    new KubeError("no answer", { code: "AnswerLost", cluster: "west", verb: "get", resource: "pods" }),
  );
  await clock.advance(1_000);
  expect(asked.slice(3).map(({ name }) => name)).toEqual(["west"]);
  asked[3]?.answer.resolve(undefined);
  await vi.waitFor(() => expect(created).toHaveLength(1));
});

test.each([
  ["its delegate is", {}, "west"],
  ["a copy of its delegate under another name is not", { name: "copy" }, undefined],
  ["its delegate that goes without having had a node is not", { deletionTimestamp: "2026-01-01T00:00:00Z" }, undefined],
])("a proxy counts in the member that shows it: %s", async (_, metadata, expected) => {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web", controller: true };
  const owned = proxyPod({ metadata: { ...proxy.metadata, ownerReferences: [owner] } });
  await lead([]);
  await proxyComes(owned);
  const made = delegateOf(owned);
  const shown = { ...made, metadata: { ...made.metadata, ...metadata } };
  controller.onDelegate(objectKey(shown.metadata), {
    name: "west",
    delegates: { get: () => shown },
  } as never as Member);
  expect(controller.owned.get(owned.metadata.uid)?.member).toBe(expected);
});
