import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { EndpointSlice, Stored } from "../../../src/api/kubernetes.ts";
import { clusters } from "../../../src/api/resources.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { endpointSlices, pods } from "../../../src/kube/resources.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { SILENT_LOG } from "../../../src/telemetry/silent-log.ts";
import { auditEvents, isWrite } from "../../support/clusters/audit.ts";
import type { Cluster } from "../../support/clusters/types.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";
import { legationOn } from "../../support/legation/process.ts";
import { makeScene, type Scene } from "../../support/services/scene.ts";

// How soon and with how many writes members of a network follow the host's endpoints.

const running = useLegation();
const clients = useClients();
const PATIENT = { timeoutMs: 240_000, intervalMs: 500 };

async function setNetwork(host: string, members: string | null): Promise<void> {
  const patch = JSON.stringify({ spec: { network: members } });
  await kubectl(hostCluster(), ["patch", "clusters.legation.dev", "west", "east", "--type=merge", `--patch=${patch}`]);
  const { code, stderr } = await legationOn(hostCluster(), "install", `--network=${host}`);
  expect(code, stderr).toBe(0);
}

beforeAll(async () => {
  afterFile(() => setNetwork("", null));
  await setNetwork("corp", "corp");
  await running().controller.stop();
  await running().controller.start();
});

/** Makes Services whose pods, so many each, are the host's own, and waits until west and east have all endpoints. */
async function makeServices(scene: Scene, count: number, replicas: number): Promise<void> {
  const { namespace } = scene;
  const names = Array.from({ length: count }, (_, index) => `web-${index}`);
  for (const name of names) await scene.service(name);
  const containers = [{ name: "main", image: "web:1" }];
  await applyAll(
    hostCluster(),
    names.map((name) => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name, namespace },
      spec: {
        replicas,
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: { automountServiceAccountToken: false, enableServiceLinks: false, containers },
        },
      },
    })),
  );
  // Members get the Services of a namespace in which they have a pod.
  await scene.run("client", {}, "west");
  await scene.run("client-east", {}, "east");
  await eventuallyPasses(async () => {
    for (const client of [clients().host, clients().west, clients().east]) {
      const all = await slicesIn(client, namespace);
      const ready = all.flatMap(({ endpoints }) => (endpoints ?? []).filter(({ conditions }) => conditions?.ready));
      expect(ready).toHaveLength(count * replicas);
    }
  }, PATIENT);
}

async function slicesIn(client: ClusterClient, namespace: string): Promise<Stored<EndpointSlice>[]> {
  return (await client.list(endpointSlices, { namespace })).items;
}

/** The endpoints that a cluster's slices show, as they change. */
class Follower {
  /** Seconds from each change until the slices showed it. */
  readonly seconds: number[] = [];
  readonly #pending = new Map<string, { readonly ready: boolean; readonly at: number }>();
  readonly #reflector: Reflector<EndpointSlice>;

  constructor(client: ClusterClient, namespace: string) {
    this.#reflector = new Reflector({
      client,
      resource: endpointSlices,
      namespace,
      clock: realClock,
      log: SILENT_LOG,
      onEvent: ({ object }) => this.#onSlice(object),
    });
    this.#reflector.start();
    onTestFinished(() => this.#reflector.stop());
  }

  get missing(): number {
    return this.#pending.size;
  }

  expects(address: string, ready: boolean): void {
    this.#pending.set(address, { ready, at: performance.now() });
  }

  #onSlice({ endpoints }: EndpointSlice): void {
    for (const { addresses, conditions } of endpoints ?? []) {
      const [address = ""] = addresses;
      const change = this.#pending.get(address);
      if (change === undefined || change.ready !== conditions?.ready) continue;
      this.#pending.delete(address);
      this.seconds.push((performance.now() - change.at) / 1000);
    }
  }
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN;
}

/** Changes the readiness of one pod after the other, so many times, and returns how long the slices of each cluster took. */
async function change(
  { namespace }: Scene,
  { changes, perSecond }: { readonly changes: number; readonly perSecond: number },
): Promise<{ readonly host: Follower; readonly members: readonly Follower[] }> {
  const { host, west, east } = clients();
  const followers = [host, west, east].map((client) => new Follower(client, namespace)) as [Follower, ...Follower[]];
  const { items } = await host.list(pods, { namespace, labelSelector: "app" });
  const writes: Promise<unknown>[] = [];
  const begin = performance.now();
  for (let index = 0; index < changes; index += 1) {
    const { metadata, status } = items[index % items.length] ?? { metadata: { name: "" } };
    const ready = Math.floor(index / items.length) % 2 === 1;
    const conditions = [{ type: "Ready", status: ready ? "True" : "False" }];
    for (const follower of followers) follower.expects(status?.podIP ?? "", ready);
    const ref = { namespace, name: metadata.name };
    writes.push(
      host.patch(pods, ref, { type: "strategic", body: { status: { conditions } } }, { subresource: "status" }),
    );
    await sleep(Math.max(0, begin + ((index + 1) * 1000) / perSecond - performance.now()));
  }
  await Promise.all(writes);
  await eventuallyPasses(() => {
    expect(followers.map(({ missing }) => missing)).toEqual([0, 0, 0]);
  });
  const [ofHost, ...members] = followers;
  return { host: ofHost, members };
}

/** Counts the writes of slices in a namespace. */
async function sliceWrites(cluster: Cluster, namespace: string, by: string): Promise<number> {
  const isOne = (event: Parameters<typeof isWrite>[0]): boolean =>
    isWrite(event) &&
    event.objectRef?.resource === "endpointslices" &&
    event.objectRef.namespace === namespace &&
    event.user.username.includes(by);
  return (await auditEvents(cluster, isOne, [namespace])).length;
}

function tell(what: string, { host, members }: Awaited<ReturnType<typeof change>>): void {
  const figures = (one: Follower): string =>
    [0.5, 0.99, 1].map((share) => `${quantile(one.seconds, share).toFixed(3)} s`).join(" / ");
  const [west, east] = members.map(figures);
  process.stderr.write(`${what}: P50 / P99 / most: host ${figures(host)}, west ${west}, east ${east}\n`);
}

test("no slice outlives the readiness of its pods by more than a second, in 99 of 100 changes", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  await makeServices(scene, 2, 10);
  const seen = await change(scene, { changes: 200, perSecond: 10 });
  tell("200 changes at 10/s", seen);
  for (const { seconds } of seen.members) {
    expect(seconds).toHaveLength(200);
    expect(quantile(seconds, 0.99)).toBeLessThan(1);
  }
});

test("5,000 changes at 50/s cost each member no more writes than the host's own controller needs", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  await makeServices(scene, 10, 20);
  const { namespace } = scene;
  const controller = "endpointslice-controller";
  const writes = (): Promise<number[]> =>
    Promise.all([
      sliceWrites(hostCluster(), namespace, controller),
      sliceWrites(memberCluster("west"), namespace, "legation"),
      sliceWrites(memberCluster("east"), namespace, "legation"),
    ]);
  const before = await writes();
  const seen = await change(scene, { changes: 5000, perSecond: 50 });
  tell("5,000 changes at 50/s", seen);
  const [onHost = 0, ...inMembers] = (await writes()).map((count, index) => count - (before[index] ?? 0));
  process.stderr.write(`writes of slices: host ${onHost}, west ${inMembers[0]}, east ${inMembers[1]}\n`);
  for (const count of inMembers) expect(count).toBeLessThanOrEqual(onHost);
  for (const { seconds } of seen.members) {
    expect(seconds).toHaveLength(5000);
    // The host's own controller is late at such a rate, too.
    expect(quantile(seconds, 0.99)).toBeLessThan(quantile(seen.host.seconds, 0.99) + 1);
  }
});

test("a thousand endpoints are in slices of a hundred at most, and go with the network", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { namespace } = scene;
  await makeServices(scene, 1, 1000);
  const { west, host } = clients();
  const sizes = (await slicesIn(west, namespace)).map(({ endpoints }) => endpoints?.length ?? 0);
  expect(sizes.filter((size) => size > 0).length).toBeGreaterThanOrEqual(10);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(100);
  await host.patch(clusters, { name: "west" }, { type: "merge", body: { spec: { network: null } } });
  await eventuallyPasses(async () => {
    const left = (await slicesIn(west, namespace)).flatMap(({ endpoints }) => endpoints ?? []);
    expect(left).toEqual([]);
  }, PATIENT);
});
