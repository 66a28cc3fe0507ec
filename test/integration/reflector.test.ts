import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type KubeObject, objectKey } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { createClusterClient } from "../../src/kube/http-client.ts";
import { loadKubeConfig } from "../../src/kube/kubeconfig.ts";
import { configMaps } from "../../src/kube/resources.ts";
import { realClock } from "../../src/runtime/clock.ts";
import { LeaderElector } from "../../src/runtime/leader-election.ts";
import { Reflector, type ReflectorEvent, type ReflectorOptions } from "../../src/runtime/reflector.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { memberCluster } from "../support/harness/clusters.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually } from "../support/harness/wait.ts";

let cluster: Cluster;
/** Writes the changes, without faults. */
let author: ClusterClient;
/** The client of the reflector, behind the fault proxy. */
let client: ClusterClient;
let namespace: string;
let reflector: Reflector<KubeObject>;
let events: ReflectorEvent<KubeObject>[];

beforeAll(() => {
  cluster = memberCluster("west");
  author = connect(cluster.kubeconfig, 60_000);
  client = connect(cluster.proxiedKubeconfig, 3_000);
});
afterAll(async () => {
  await Promise.all([author.close(), client.close()]);
});
beforeEach(async () => {
  namespace = await freshNamespace(cluster, { prefix: "reflector" });
  events = [];
  reflector = reflect();
});
afterEach(async () => {
  await reflector.stop();
  await cluster.proxy.heal();
});

function connect(kubeconfig: string, timeoutMs: number): ClusterClient {
  const credentials = loadKubeConfig({ kubeconfig, env: {} });
  return createClusterClient({
    cluster: "west",
    credentials,
    limits: { connectTimeoutMs: 1_000, queueTimeoutMs: 60_000, timeoutMs },
  });
}

function reflect(options: Partial<ReflectorOptions<KubeObject>> = {}): Reflector<KubeObject> {
  return new Reflector<KubeObject>({
    client,
    resource: configMaps,
    namespace,
    fieldSelector: "metadata.name!=kube-root-ca.crt",
    clock: realClock,
    log: createLogger({ level: "silent" }),
    onEvent: (event) => events.push(event),
    ...options,
  });
}

const labels = { labels: { shown: "yes" } };
const put = (name: string): Promise<unknown> => author.create(configMaps, { metadata: { namespace, name, ...labels } });
const remove = (name: string): Promise<void> => author.delete(configMaps, { namespace, name });
const touch = (name: string, body: object = { data: { at: String(performance.now()) } }): Promise<unknown> =>
  author.patch(configMaps, { namespace, name }, { type: "merge", body });

/** Waits until the store shows exactly what the server has. */
async function equalToServer(): Promise<void> {
  await eventually(async () => {
    const { items } = await author.list(configMaps, { namespace, fieldSelector: "metadata.name!=kube-root-ca.crt" });
    const shape = ({ metadata }: KubeObject): string =>
      `${metadata?.name} ${metadata?.uid} ${metadata?.resourceVersion}`;
    expect(reflector.store.list().map(shape).sort()).toEqual(items.map(shape).sort());
    return true;
  });
}

describe("a reflector of a real API server", () => {
  test("reads several pages, then follows every change", async () => {
    await Promise.all(Array.from({ length: 1_100 }, (_, index) => put(`c${index}`)));
    reflector.start();
    await reflector.whenSynced();
    expect(reflector.store.size).toBe(1_100);
    await touch("c7");
    await remove("c8");
    await put("new");
    await equalToServer();
    expect(events.slice(1_100).map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual([
      "updated c7",
      "deleted c8",
      "added new",
    ]);
    expect(reflector.store.list()[0]?.metadata).not.toHaveProperty("managedFields");
  });

  test("deletes an object that leaves the selector, and adds one that enters it", async () => {
    await put("a");
    reflector = reflect({ labelSelector: "shown=yes" });
    reflector.start();
    await reflector.whenSynced();
    await touch("a", { metadata: { labels: { shown: "no" } } });
    await eventually(() => reflector.store.size === 0);
    await touch("a", { metadata: { labels: { shown: "yes" } } });
    await eventually(() => reflector.store.size === 1);
    expect(events.map(({ type }) => type)).toEqual(["added", "deleted", "added"]);
  });

  test("sees each uid come and go, in order, when an object is created anew fifty times under one name", async () => {
    reflector.start();
    await reflector.whenSynced();
    for (let round = 0; round < 50; round += 1) {
      await put("again");
      await remove("again");
    }
    await eventually(() => events.length === 100);
    const told = events.map(({ type, object }) => `${type} ${object.metadata.uid}`);
    const uids = events.filter(({ type }) => type === "added").map(({ object }) => object.metadata.uid);
    expect(told).toEqual(uids.flatMap((uid) => [`added ${uid}`, `deleted ${uid}`]));
    expect(new Set(uids).size).toBe(50);
  });
});

describe("a reflector whose connection fails", () => {
  async function changeMuch(): Promise<void> {
    await Promise.all(["a", "b", "c", "d"].map((name) => remove(name).catch(() => {})));
    await Promise.all(["b", "c", "e"].map((name) => put(name).catch(() => {})));
    await Promise.all(["b", "e"].map((name) => touch(name)));
  }

  test.each<[string, (during: () => Promise<void>) => Promise<void>]>([
    [
      "is reset again and again",
      async (during) => {
        for (let round = 0; round < 5; round += 1) {
          await cluster.proxy.reset();
          await during();
        }
      },
    ],
    [
      "is cut for a while",
      async (during) => {
        await cluster.proxy.cut();
        await during();
        await cluster.proxy.heal();
      },
    ],
    [
      "swallows everything for a while",
      async (during) => {
        await cluster.proxy.blackhole();
        await during();
        await realClock.sleep(2_000);
        await cluster.proxy.heal();
      },
    ],
    [
      "is slow",
      async (during) => {
        await cluster.proxy.slow(300);
        await during();
        await cluster.proxy.heal();
      },
    ],
    [
      "ends because the API server is killed and started again",
      async (during) => {
        await during();
        await cluster.apiServer.restart();
        await during();
      },
    ],
    [
      "hangs because the API server is frozen for a while",
      async (during) => {
        await during();
        await cluster.apiServer.freeze();
        await realClock.sleep(4_000);
        await cluster.apiServer.thaw();
        await during();
      },
    ],
  ])("ends with a store equal to the server's when the connection %s", async (_case, fault) => {
    for (const name of ["a", "b", "c"]) await put(name);
    reflector.start();
    await reflector.whenSynced();
    await fault(changeMuch);
    await equalToServer();
    const last = reflector.store.get(objectKey({ namespace, name: "e" }));
    expect(last?.metadata.name).toBe("e");
    await touch("e");
    await equalToServer();
  });
});

describe("leader election", () => {
  test("hands over at once after a clean stop, and after the lease's duration when the leader is cut off", async () => {
    const log: string[] = [];
    const elector = (identity: string, through: ClusterClient, leaseDurationMs: number): LeaderElector =>
      new LeaderElector({
        client: through,
        namespace,
        name: "controller",
        identity,
        leaseDurationMs,
        renewDeadlineMs: (leaseDurationMs * 2) / 3,
        retryPeriodMs: 500,
        clock: realClock,
        log: createLogger({ level: "silent" }),
        onStartedLeading: () => log.push(`${identity} leads`),
        onStoppedLeading: () => {
          log.push(`${identity} stopped`);
        },
      });
    // Both leases must expire.
    const [a, b, c] = [elector("a", author, 15_000), elector("b", client, 6_000), elector("c", author, 6_000)];
    a.start();
    await eventually(() => a.isLeader);
    b.start();
    const stoppedAt = performance.now();
    await a.stop();
    await eventually(() => b.isLeader);
    // Long before its lease would have ended.
    expect(performance.now() - stoppedAt).toBeLessThan(12_000);
    c.start();
    await cluster.proxy.blackhole();
    await eventually(() => c.isLeader);
    expect(b.isLeader).toBe(false);
    expect(log).toEqual(["a leads", "a stopped", "b leads", "b stopped", "c leads"]);
    await cluster.proxy.heal();
    await Promise.all([b.stop(), c.stop()]);
  });
});
