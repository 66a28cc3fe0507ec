import { once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type KubeEvent, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { PodEventController } from "../../../../src/controllers/pod-events/controller.ts";
import type { ClusterClient, WatchOptions } from "../../../../src/kube/client.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { type EventParts, kubeletEvent } from "../../../support/builders/event.ts";
import { delegates as delegatesOf, member } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock, settle } from "../../../support/clock/fake-clock.ts";
import { connect } from "../../../support/fault-server/connect.ts";
import { FaultServer } from "../../../support/fault-server/fault-server.ts";
import { delegateOf } from "../delegation/world.ts";
import { registryOf } from "../fleet.ts";

// A member may have one less.
const MANY = 1_001;

let servers: FaultServer[];
let clients: ClusterClient[];

beforeEach(async () => {
  servers = [await FaultServer.start(), await FaultServer.start()];
  clients = servers.map((server) => connect(server));
});
afterEach(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

/** Returns a host that collects the events which are written to it. */
function hostTelling(told: KubeEvent[]): ClusterClient {
  return fakeClient({
    create: async (_resource, event) => {
      told.push({ involvedObject: {}, ...event, metadata: event.metadata ?? {} });
      return event;
    },
  });
}

test("keeps events that come before their delegate, despite many events of foreign pods in another member", async () => {
  const proxy = proxyPod();
  const delegates = new Map<string, Stored<Pod>>();
  const asked = new Map<string, number>();
  const members = ["busy", "west"].map((name, index) => {
    const client = clients[index];
    if (client === undefined) throw new Error("no client");
    const delegate = (): Stored<Pod> | undefined => {
      asked.set(name, (asked.get(name) ?? 0) + 1);
      return delegates.get(name);
    };
    return member(name, client, { delegates: delegatesOf({ get: delegate, size: 1 }) });
  });
  const clock = new FakeClock();
  const told: KubeEvent[] = [];
  const controller = new PodEventController({
    host: hostTelling(told),
    registry: registryOf(members),
    proxies: { get: (key) => (key === objectKey(proxy.metadata) ? proxy : undefined) },
    warningsOnly: false,
    events: new Events(),
    clock,
    log: createLogger({ level: "silent" }),
  });
  const [busy, west] = servers;
  for (let index = 0; index < MANY; index++) {
    const uid = `${String(index).padStart(8, "0")}-d9cb-469f-a165-70867728950e`;
    busy?.world.put(
      kubeletEvent({ uid, involvedObject: { kind: "Pod", namespace: "team", name: "other", uid: "other" } }),
    );
  }
  controller.start();
  await expect.poll(() => asked.get("busy")).toBe(MANY);
  west?.world.put(kubeletEvent());
  await expect.poll(() => asked.get("west")).toBe(1);
  delegates.set("west", delegateOf(proxy));
  await clock.advance(2_000);
  await expect.poll(() => told.map(({ involvedObject }) => involvedObject.uid)).toEqual([proxy.metadata.uid]);
  await controller.stop();
});

const ABOUT = { kind: "Pod", namespace: "team", name: "web-0", uid: "delegate-uid" };

test.each<[string, { readonly event?: EventParts; readonly node?: string; readonly owner?: string }, number]>([
  ["of the delegate", {}, 1],
  ["of the delegate of a pod that is placed in this member", { node: "legation-west" }, 1],
  ["of another pod of the delegate's name", { event: { involvedObject: { ...ABOUT, uid: "other" } } }, 0],
  ["of what the member calls the delegate of a pod that is placed elsewhere", { node: "legation-east" }, 0],
  ["of the delegate of an earlier pod of that name", { owner: "uid-0" }, 0],
  ["that is larger than any that a kubelet writes", { event: { message: "x".repeat(32 * 1024) } }, 0],
])("copies an event to the proxy, or not: %s", async (_which, { event, node, owner = "uid-1" }, times) => {
  const proxy = proxyPod(node === undefined ? {} : { spec: { nodeName: node } });
  const delegate = delegateOf(proxyPod({ uid: owner }));
  const seen = Promise.withResolvers<void>();
  const client = fakeClient({
    list: async () => ({ items: [], resourceVersion: "1", size: 0 }),
    watch: async function* (_resource: unknown, { onOpen, signal }: WatchOptions) {
      onOpen?.();
      yield { type: "ADDED", object: kubeletEvent(event), size: 0 };
      seen.resolve();
      if (!signal.aborted) await once(signal, "abort");
    },
  });
  const west = member("west", client, { delegates: delegatesOf({ get: () => delegate, size: 1 }) });
  const told: KubeEvent[] = [];
  const controller = new PodEventController({
    host: hostTelling(told),
    registry: registryOf([west]),
    proxies: { get: () => proxy },
    warningsOnly: false,
    events: new Events(),
    clock: new FakeClock(),
    log: createLogger({ level: "silent" }),
  });
  controller.start();
  await seen.promise;
  await settle();
  expect(told.map(({ involvedObject }) => involvedObject.uid)).toEqual(Array(times).fill("uid-1"));
  await controller.stop();
});

test.each([
  ["asks for an event that an earlier leader may have written", -1_000, ["patch", "create"]],
  ["asks for no event of a pod that is younger than the controller", 5_000, ["create"]],
])("a list, after a watch began: %s", async (_which, ageMs, expected) => {
  const clock = new FakeClock();
  const proxy = proxyPod({ metadata: { creationTimestamp: new Date(clock.wall() + ageMs).toISOString() } });
  const writes: string[] = [];
  const written = Promise.withResolvers<void>();
  const host = fakeClient({
    patch: async () => {
      writes.push("patch");
      throw new KubeError("not found", { cluster: "host", verb: "patch", resource: "events", code: "NotFound" });
    },
    create: async (_resource, event) => {
      writes.push("create");
      written.resolve();
      return event;
    },
  });
  const at = new Date(clock.wall()).toISOString();
  const client = fakeClient({
    list: async () => ({ items: [kubeletEvent({ lastTimestamp: at })], resourceVersion: "1", size: 1 }),
    watch: async function* (_resource: unknown, { onOpen, signal }: WatchOptions) {
      onOpen?.();
      yield { type: "BOOKMARK", resourceVersion: "1", size: 0 };
      if (!signal.aborted) await once(signal, "abort");
    },
  });
  const west = member("west", client, { delegates: delegatesOf({ get: () => delegateOf(proxy), size: 1 }) });
  const controller = new PodEventController({
    host,
    registry: registryOf([west]),
    proxies: { get: () => proxy },
    warningsOnly: false,
    events: new Events(),
    clock,
    log: createLogger({ level: "silent" }),
  });
  controller.start();
  await written.promise;
  expect(writes).toEqual(expected);
  await controller.stop();
});
