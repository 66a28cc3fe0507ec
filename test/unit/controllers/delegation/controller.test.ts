import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { Load } from "../../../../src/clusters/load.ts";
import { DelegationController } from "../../../../src/controllers/delegation/controller.ts";
import type { WatchEvent, WatchOptions } from "../../../../src/kube/client.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../../cli/client.ts";

const nothing = (): void => {};
const proxy = proxyPod({ metadata: { annotations: { "legation.dev/api": "none" } } });
const team = { metadata: { name: "team", uid: "n", resourceVersion: "1" } };

let clock: FakeClock;
let started: PromiseWithResolvers<WatchEvent<Pod>>;
let created: string[];
let controller: DelegationController;
let west: { read: boolean };

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
}

/** The member `west`, which does not answer creations; it has been read unless a test says otherwise. */
function memberOf(cluster: object) {
  const size = { cpu: 8, pods: 100 };
  const open = { name: "west", labels: {}, allocatable: size, largestNode: size, used: {} };
  const closed = { reason: "ClusterNotReady", message: "its pods and nodes are still being read" };
  return {
    name: "west",
    cluster,
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
    candidate: () => ({ ...open, ...(west.read ? {} : { closed }) }),
    answerOf: (answer: Promise<unknown>) => answer,
    noteFailure: nothing,
    client: fakeClient({
      create: (_resource, _object, { signal } = {}) => {
        created.push("west");
        return untilAborted(signal);
      },
    }),
  };
}

beforeEach(async () => {
  clock = new FakeClock();
  started = Promise.withResolvers();
  created = [];
  const cluster = { metadata: { name: "west", uid: "c" }, spec: {}, status: { version: "v1.36.0" } };
  const member = memberOf(cluster);
  west = member;
  const host = fakeClient({
    list: (async ({ plural }: { readonly plural: string }) => {
      return { items: plural === "namespaces" ? [team] : [], resourceVersion: "1", size: 0 };
    }) as never,
    watch: async function* ({ plural }: { readonly plural: string }, { onOpen, signal }: WatchOptions) {
      onOpen?.();
      if (plural === "pods") yield await started.promise;
      await untilAborted(signal);
    } as never,
    patch: (async () => proxy) as never,
  });
  const registry = {
    cluster: () => cluster,
    member: () => member,
    members: () => [member],
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
});
afterEach(() => controller.stop());

/** A proxy that comes to be while the controller leads. */
async function proxyComes(object: Stored<Pod>): Promise<void> {
  started.resolve({ type: "ADDED", object, size: 0 });
  await clock.advance(1_000);
}

test("a Cluster stays while a delegate is being created in its member", async () => {
  expect(controller.waitingIn("west")).toBe(0);
  await proxyComes(proxy);
  expect(created).toEqual(["west"]);
  expect(controller.waitingIn("west")).toBe(1);
});

test("a member that is reached at another address may have the delegates of all that wait, until it is read", async () => {
  west.read = false;
  await proxyComes(proxy);
  expect(created).toEqual([]);
  expect(controller.waitingIn("west")).toBe(0);
  controller.onReconnected("west");
  expect(controller.waitingIn("west")).toBe(1);
});
