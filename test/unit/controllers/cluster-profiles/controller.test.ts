import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { type ClusterProfile, type KubeObject, objectKey, type Stored } from "../../../../src/api/kubernetes.ts";
import { ClusterProfileController } from "../../../../src/controllers/cluster-profiles/controller.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import type { Patch, WatchOptions } from "../../../../src/kube/client.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { serving } from "../../../support/builders/discovery.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { cluster, HOST_ADDRESS } from "./profiles.ts";

const MINUTE_MS = 60_000;

/** A host whose ClusterProfiles can be installed and removed, with all writes that it was sent. */
class FakeHost {
  readonly profiles = new Map<string, Stored<ClusterProfile>>();
  readonly writes: string[] = [];
  readonly clusters = new Map<string, Stored<Cluster>>([["west", cluster()]]);
  namespaces: string[] = [];
  isServed = false;
  refuses = false;
  #version = 10;
  readonly #watches = new Set<(event: object | undefined) => void>();

  readonly client = fakeClient({
    raw: (request) => {
      const group = "multicluster.x-k8s.io";
      const versions: Record<string, string[]> = this.isServed ? { v1alpha1: ["clusterprofiles"] } : {};
      return serving({ group, versions })(request);
    },
    list: async ({ plural }: Resource<KubeObject>) => {
      if (plural === "clusterprofiles" && !this.isServed) throw this.#error("NotFound");
      const named = this.namespaces.map((name) => ({ metadata: { name, uid: name, resourceVersion: "1" } }));
      const items = plural === "namespaces" ? named : [...this.profiles.values()];
      return { items, resourceVersion: String(this.#version), size: 1 };
    },
    watch: (resource: Resource<KubeObject>, options: WatchOptions) => this.#watch(resource, options),
    create: async (_: unknown, object: ClusterProfile) => {
      this.writes.push(`create ${object.metadata?.namespace}/${object.metadata?.name}`);
      if (this.refuses) throw this.#error("Forbidden");
      return this.put(object);
    },
    patch: async (_: unknown, ref: { namespace: string; name: string }, { body }: Patch) => {
      this.writes.push(`patch ${ref.namespace}/${ref.name}`);
      const before = this.profiles.get(objectKey(ref));
      if (before === undefined) throw this.#error("NotFound");
      const { status = before.status } = body as ClusterProfile;
      return this.put({ ...before, status: status ?? null });
    },
    delete: async (_: unknown, ref: { namespace: string; name: string }) => {
      this.writes.push(`delete ${ref.namespace}/${ref.name}`);
      this.remove(objectKey(ref));
    },
  });

  put(object: ClusterProfile): Stored<ClusterProfile> {
    this.#version += 1;
    const { namespace = "", name = "", ...more } = object.metadata ?? {};
    const key = objectKey({ namespace, name });
    const metadata = { ...more, namespace, name, uid: `uid-${name}`, resourceVersion: String(this.#version) };
    const stored: Stored<ClusterProfile> = { ...object, metadata };
    const type = this.profiles.has(key) ? "MODIFIED" : "ADDED";
    this.profiles.set(key, stored);
    for (const send of this.#watches) send({ type, object: stored, size: 1 });
    return stored;
  }

  remove(key: string): void {
    const object = this.profiles.get(key);
    this.profiles.delete(key);
    if (object !== undefined) for (const send of this.#watches) send({ type: "DELETED", object, size: 1 });
  }

  /** Removes the definition with all objects. */
  uninstall(): void {
    this.isServed = false;
    for (const key of [...this.profiles.keys()]) this.remove(key);
    for (const send of this.#watches) send(undefined);
  }

  async *#watch({ plural }: Resource<KubeObject>, { signal, onOpen }: WatchOptions): AsyncGenerator<object> {
    if (plural === "clusterprofiles" && !this.isServed) throw this.#error("NotFound");
    const events: (object | undefined)[] = [];
    let wake = (): void => {};
    const send = (event: object | undefined): void => {
      events.push(event);
      wake();
    };
    if (plural === "clusterprofiles") this.#watches.add(send);
    signal.addEventListener("abort", () => send(undefined), { once: true });
    onOpen?.();
    for (;;) {
      while (events.length > 0) {
        const event = events.shift();
        if (event === undefined) {
          this.#watches.delete(send);
          return;
        }
        yield event;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }

  #error(code: "NotFound" | "Forbidden"): Error {
    return kubeError(code, code, { cluster: "fake", verb: "any", resource: "clusterprofiles" });
  }
}

let clock: FakeClock;
let host: FakeHost;
let events: Events<ControllerEvents>;
let told: string[];

beforeEach(() => {
  clock = new FakeClock();
  host = new FakeHost();
  events = new Events();
  told = [];
});

async function start(): Promise<void> {
  const controller = new ClusterProfileController({
    host: host.client,
    registry: {
      clusters: () => [...host.clusters.values()],
      cluster: (name: string) => host.clusters.get(name),
    },
    recorder: {
      record: (_: object, { message, dedupe = "" }: { message: string; dedupe?: string }) =>
        told.push(`${dedupe}: ${message}`),
      isRecorded: (dedupe: string) => told.some((line) => line.startsWith(`${dedupe}: `)),
    },
    events,
    hostAddress: () => HOST_ADDRESS,
    clock,
    log: createLogger({ level: "silent" }),
  });
  controller.start();
  onTestFinished(() => controller.stop());
  await settle();
}

/** Lets the controller act, for less than a pause of discovery. */
async function settle(): Promise<void> {
  for (let step = 0; step < 10; step += 1) await clock.advance(200);
}

test("writes a profile and its status once, and nothing when only counters of a Cluster change", async () => {
  host.isServed = true;
  await start();
  expect(host.writes).toEqual(["create legation-system/west", "patch legation-system/west"]);
  for (let pods = 0; pods < 5; pods += 1) {
    host.clusters.set("west", cluster({ status: { ...cluster().status, pods } }));
    events.emit("clusterStatus", "west");
    await settle();
  }
  await clock.advance(60 * MINUTE_MS);
  expect(host.writes).toHaveLength(2);
});

describe("the API of ClusterProfiles", () => {
  test("is used when it appears later", async () => {
    await start();
    events.emit("cluster", "west");
    await settle();
    expect(host.writes).toEqual([]);
    host.isServed = true;
    await clock.advance(MINUTE_MS);
    await settle();
    expect(host.profiles.get("legation-system/west")?.status).toMatchObject({ version: { kubernetes: "v1.36.3" } });
  });

  test("is not asked for more than its discovery once it is removed, and is used again when it returns", async () => {
    host.isServed = true;
    await start();
    host.uninstall();
    await settle();
    const before = host.writes.length;
    events.emit("cluster", "west");
    await clock.advance(5 * MINUTE_MS);
    // At most one write was on its way when the definition went.
    expect(host.writes.length).toBeLessThanOrEqual(before + 1);
    host.isServed = true;
    await clock.advance(MINUTE_MS);
    await settle();
    expect(host.profiles.has("legation-system/west")).toBe(true);
  });
});

test("deletes the profile of a Cluster that is gone", async () => {
  host.isServed = true;
  await start();
  host.clusters.delete("west");
  events.emit("cluster", "west");
  await settle();
  expect([...host.profiles.keys()]).toEqual([]);
});

test("makes profiles in namespaces that ask for them, and removes those of other namespaces", async () => {
  host.isServed = true;
  host.namespaces = ["kueue-system"];
  const spec = { clusterManager: { name: "legation" } };
  host.put({ metadata: { namespace: "earlier", name: "west" }, spec });
  await start();
  expect([...host.profiles.keys()].toSorted()).toEqual(["kueue-system/west", "legation-system/west"]);
});

test("leaves another manager's profile as it is, tells the operator once, and takes the name when it is free", async () => {
  host.isServed = true;
  host.put({
    metadata: { namespace: "legation-system", name: "west" },
    spec: { clusterManager: { name: "fleet" } },
  });
  await start();
  events.emit("cluster", "west");
  await settle();
  expect(host.writes).toEqual([]);
  expect(told).toHaveLength(1);
  host.remove("legation-system/west");
  await settle();
  expect(host.profiles.get("legation-system/west")?.spec?.clusterManager).toEqual({ name: "legation" });
});

test("does not repeat a refused write at once", async () => {
  host.isServed = true;
  host.refuses = true;
  await start();
  // A missing right may be one that the API server has not seen yet.
  await clock.advance(MINUTE_MS);
  const before = host.writes.length;
  expect(before).toBeLessThan(12);
  await clock.advance(3 * MINUTE_MS);
  expect(host.writes).toHaveLength(before);
  host.refuses = false;
  await clock.advance(5 * MINUTE_MS);
  expect(host.profiles.has("legation-system/west")).toBe(true);
});
