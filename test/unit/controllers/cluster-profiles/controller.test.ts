import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { CLUSTER_PROFILES_LABEL, CLUSTER_PROFILES_VALUE } from "../../../../src/api/keys.ts";
import { type ObjectRef, objectKey, type Stored } from "../../../../src/api/kubernetes.ts";
import { ClusterProfileController } from "../../../../src/controllers/cluster-profiles/controller.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { clusterProfiles, namespaces } from "../../../../src/kube/resources.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { clientOf } from "../../../support/api-server/client.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { cluster, HOST_ADDRESS } from "./profiles.ts";

const MINUTE_MS = 60_000;

const profiles = { ...clusterProfiles, version: "v1alpha1" };
const WEST = { namespace: "legation-system", name: "west" };

/** A host whose ClusterProfiles can be installed and removed, with all writes that it was sent. */
class ProfileHost extends MemoryCluster {
  override readonly client: ClusterClient;
  readonly writes: string[] = [];
  readonly clusters = new Map<string, Stored<Cluster>>([["west", cluster()]]);
  refuses = false;

  constructor() {
    super("host", "host-1");
    this.serve(profiles, false);
    const client = clientOf(this);
    const write = (verb: string, { namespace, name }: Partial<ObjectRef> = {}): void => {
      this.writes.push(`${verb} ${namespace}/${name}`);
    };
    this.client = {
      ...client,
      create: async (resource, object, options) => {
        write("create", object.metadata);
        if (this.refuses) throw kubeError("Forbidden", "no", { cluster: "host", resource: resource.plural });
        return client.create(resource, object, options);
      },
      patch: async (resource, ref, patch, options) => {
        write("patch", ref);
        return client.patch(resource, ref, patch, options);
      },
      delete: async (resource, ref, options) => {
        write("delete", ref);
        return client.delete(resource, ref, options);
      },
    };
  }

  /** Keys of all profiles. */
  get profiles(): string[] {
    return this.all(profiles).map(({ metadata }) => objectKey(metadata));
  }
}

let clock: FakeClock;
let host: ProfileHost;
let events: Events<ControllerEvents>;
/** Keys of events. The recorder records one event of each. */
let told: Set<string>;

beforeEach(() => {
  clock = new FakeClock();
  host = new ProfileHost();
  events = new Events();
  told = new Set();
});

async function start(): Promise<void> {
  const controller = new ClusterProfileController({
    host: host.client,
    registry: {
      clusters: () => [...host.clusters.values()],
      cluster: (name: string) => host.clusters.get(name),
    },
    recorder: {
      record: (_: object, { dedupe = "" }: { dedupe?: string }) => told.add(dedupe),
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
  await clock.advanceInSteps(10, 200);
}

test("writes a profile and its status once, and nothing when only counters of a Cluster change", async () => {
  host.serve(profiles, true);
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
    host.serve(profiles, true);
    await clock.advance(MINUTE_MS);
    await settle();
    expect(host.peek(profiles, WEST)?.status).toMatchObject({ version: { kubernetes: "v1.36.3" } });
  });

  test("is not asked for more than its discovery once it is removed, and is used again when it returns", async () => {
    host.serve(profiles, true);
    await start();
    host.serve(profiles, false);
    await settle();
    const before = host.writes.length;
    events.emit("cluster", "west");
    await clock.advance(5 * MINUTE_MS);
    // At most one write was on its way when the definition went.
    expect(host.writes.length).toBeLessThanOrEqual(before + 1);
    host.serve(profiles, true);
    await clock.advance(MINUTE_MS);
    await settle();
    expect(host.peek(profiles, WEST)).toBeDefined();
  });
});

test("deletes the profile of a Cluster that is gone", async () => {
  host.serve(profiles, true);
  await start();
  host.clusters.delete("west");
  events.emit("cluster", "west");
  await settle();
  expect(host.profiles).toEqual([]);
});

test("makes profiles in namespaces that ask for them, and removes those of other namespaces", async () => {
  host.serve(profiles, true);
  const labels = { [CLUSTER_PROFILES_LABEL]: CLUSTER_PROFILES_VALUE };
  host.put(namespaces, { metadata: { name: "kueue-system", labels } });
  const spec = { clusterManager: { name: "legation" } };
  host.put(profiles, { metadata: { namespace: "earlier", name: "west" }, spec });
  await start();
  expect(host.profiles).toEqual(["kueue-system/west", "legation-system/west"]);
});

test("leaves another manager's profile as it is, tells the operator once, and takes the name when it is free", async () => {
  host.serve(profiles, true);
  host.put(profiles, {
    metadata: WEST,
    spec: { clusterManager: { name: "fleet" } },
  });
  await start();
  events.emit("cluster", "west");
  await settle();
  expect(host.writes).toEqual([]);
  expect([...told]).toEqual([expect.stringMatching(/^ProfileConflict .*west$/)]);
  host.drop(profiles, WEST);
  await settle();
  expect(host.peek(profiles, WEST)?.spec?.clusterManager).toEqual({ name: "legation" });
});

test("does not repeat a refused write at once", async () => {
  host.serve(profiles, true);
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
  expect(host.peek(profiles, WEST)).toBeDefined();
});
