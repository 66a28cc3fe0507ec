import { beforeAll, beforeEach, expect, test } from "vitest";
import {
  CLUSTERS_ANNOTATION,
  QUOTA_ANNOTATION,
  SLOT_LABEL,
  WHOLE_KEY,
  WISHES_OF_ANNOTATION,
} from "../../src/api/keys.ts";
import type { Job, OwnerReference } from "../../src/api/kubernetes.ts";
import { CLUSTER_QUEUE_LABEL } from "../../src/api/kueue.ts";
import type { CheckEntry } from "../../src/api/kueue-workload.ts";
import { delegatedTypes } from "../../src/api/resources.ts";
import { leaseOf } from "../../src/api/shards.ts";
import { jobs, leases, nodes, pods } from "../../src/kube/resources.ts";
import { replicated, stays } from "../support/builders/workload.ts";
import { freePort } from "../support/clusters/ports.ts";
import { expectAllRunOnce } from "../support/delegated/burst.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { installKueueDefinitions, removeKueueDefinitions } from "../support/engines/kueue-definitions.ts";
import { clusterQueue, flavor, queuesV1beta2, quotasOf } from "../support/engines/kueue-objects.ts";
import { KueueScheduler, type Ref, workloadsV1beta2 } from "../support/engines/kueue-scheduler.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import type { LegationProcess } from "../support/legation/start.ts";
import { createWidget, useWholeWidgets } from "../support/legation/whole-widgets.ts";

const LEASE_MS = 15_000;
const SHARDS = 4;
const KUEUE = { apiVersion: "kueue.x-k8s.io/v1beta2" };
// The controller looks for the API when it starts, and once a minute.
beforeAll(async () => {
  afterFile(() => removeKueueDefinitions(hostCluster()));
  await installKueueDefinitions(hostCluster());
}, 120_000);
const clients = useClients();
const running = useLegation({
  restart: false,
  env: { LEGATION_SHARDS: String(SHARDS) },
  controllerFlags: ["--identity=first", `--lease-duration=${LEASE_MS / 1000}s`],
});

/** Beside the first, which the harness starts. */
const replicas = new Map<string, LegationProcess>();

async function replica(identity: string, shards = SHARDS): Promise<LegationProcess> {
  const flags = [`--identity=${identity}`, `--lease-duration=${LEASE_MS / 1000}s`, `--shards=${shards}`];
  const made = await running().another("controller", [...flags, `--kubelet-listen=127.0.0.1:${await freePort()}`]);
  await made.start();
  replicas.set(identity, made);
  return made;
}

async function holders(count = SHARDS): Promise<readonly (string | undefined)[]> {
  const named = Array.from({ length: count }, (_, index) => ({ namespace: "legation-system", name: leaseOf(index) }));
  const found = await Promise.all(named.map((ref) => clients().host.find(leases, ref)));
  return found.map((lease) => lease?.spec?.holderIdentity);
}

/** Waits until each of these replicas leads a fair part of the shards. */
async function shared(among: readonly string[], count = SHARDS): Promise<void> {
  await eventuallyPasses(
    async () => {
      const held = await holders(count);
      const parts = among.map((identity) => held.filter((holder) => holder === identity).length);
      expect(parts.reduce((sum, part) => sum + part, 0)).toBe(count);
      expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1);
    },
    { timeoutMs: 60_000 },
  );
}

let namespaces: readonly string[] = [];
const created = new Map<string, string[]>();

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const clusters = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespaces = await Promise.all(
    Array.from({ length: 8 }, (_, number) => freshNamespace(clusters, { prefix: `shards-${number}`, labels })),
  );
});

/** Creates a pod in each namespace, and waits until all that ever were created run, by one delegate each. */
async function createAndRun(name: string): Promise<void> {
  await Promise.all(
    namespaces.map(async (namespace) => {
      await clients().host.create(pods, delegatedPod(namespace, name));
      created.set(namespace, [...(created.get(namespace) ?? []), name]);
    }),
  );
  const clusters = { host: hostCluster(), members: [memberCluster("west"), memberCluster("east")] };
  await Promise.all(
    namespaces.map((namespace) => expectAllRunOnce(clients().host, clusters, namespace, created.get(namespace) ?? [])),
  );
}

useWholeWidgets();

test("a DelegatedType counts the objects of all shards", async () => {
  await Promise.all(namespaces.map((namespace) => createWidget(clients().host, namespace, { size: 1 })));
  await eventuallyPasses(async () => {
    const { status } = await clients().host.get(delegatedTypes, { name: "widgets.shop.example.com" });
    expect(status).toMatchObject({ objects: namespaces.length, waiting: 0 });
  });
});

/** Creates a whole Job in each namespace, in west, with a pod of two cores that runs. */
async function runWholeJobs(): Promise<void> {
  const main = { name: "main", image: "main:1", resources: { requests: { cpu: "2" } } };
  const labels = { [CLUSTER_QUEUE_LABEL]: "all" };
  const made: NonNullable<Job["spec"]>["template"] = {
    metadata: { labels, annotations: stays("running") },
    spec: { restartPolicy: "Never", containers: [main] },
  };
  await Promise.all(
    namespaces.map(async (namespace) => {
      const annotations = { [WHOLE_KEY]: "true", "legation.dev/clusters": "west" };
      const metadata = { namespace, name: "whole", annotations };
      await clients().host.create(jobs, { apiVersion: "batch/v1", kind: "Job", metadata, spec: { template: made } });
      await eventuallyPasses(async () => {
        expect((await clients().host.get(jobs, { namespace, name: "whole" })).status).toMatchObject({ active: 1 });
      });
    }),
  );
}

/** Reserves quota for a workload of two pods, and returns the answer to whether members have room for it. */
async function roomFor(
  metadata: Ref & { readonly ownerReferences?: OwnerReference[] },
  cpu: string,
  annotations: Record<string, string> = {},
): Promise<CheckEntry> {
  const { host } = clients();
  const containers = [{ name: "main", image: "main:1", resources: { requests: { cpu } } }];
  const podSets = [{ name: "main", count: 2, template: { metadata: { annotations }, spec: { containers } } }];
  await host.create(workloadsV1beta2, { ...KUEUE, kind: "Workload", metadata, spec: { podSets } });
  const kueue = new KueueScheduler(host, "room");
  await kueue.reserve(metadata, [{ name: "main", count: 2 }]);
  return eventually(async () => {
    const found = await kueue.entry(metadata);
    return found?.state !== "Pending" && found;
  });
}

test("Kueue's quotas and rooms know the whole Jobs and the workloads' wishes of all shards", async () => {
  const { host, west } = clients();
  await runWholeJobs();
  // Shows that the member was read after the Jobs began.
  const foreign = { name: "main", image: "main:1", resources: { requests: { cpu: "3" } } };
  await west.create(pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: namespaces[0] ?? "", name: "foreign", annotations: stays("running") },
    spec: { containers: [foreign] },
  });
  await podThat(west, namespaces[0] ?? "", "foreign", inPhase("Running"));
  const { items } = await west.list(nodes);
  const cores = items.reduce((sum, { status }) => sum + Number(status?.allocatable?.cpu), 0);
  const annotations = { [QUOTA_ANNOTATION]: "follow" };
  await applyAll(hostCluster(), [
    flavor("west", { "legation.dev/cluster": "west" }),
    clusterQueue("all", { west: { cpu: "0" } }, { annotations }),
    { ...KUEUE, kind: "AdmissionCheck", metadata: { name: "room" }, spec: { controllerName: "legation.dev/room" } },
  ]);
  // Pods that a queue admitted are no loss of room for queues.
  await eventuallyPasses(
    async () =>
      expect(quotasOf(await host.get(queuesV1beta2, { name: "all" }))).toEqual({ west: { cpu: String(cores - 3) } }),
    { timeoutMs: 60_000 },
  );
  const metadata = { name: "web", annotations: { [CLUSTERS_ANNOTATION]: "east" } };
  const web = { ...replicated("Deployment", 0), metadata };
  for (const namespace of namespaces) {
    const { uid } = (await host.get(jobs, { namespace, name: "whole" })).metadata;
    const owner = { apiVersion: "batch/v1", kind: "Job", name: "whole", uid, controller: true };
    const whole = await roomFor({ namespace, name: "whole", ownerReferences: [owner] }, "4k");
    expect(whole).toMatchObject({ state: "Rejected", message: expect.stringContaining("4000 requested") });
    await applyAll(hostCluster(), [web], ["-n", namespace]);
    const wishing = await roomFor({ namespace, name: "web" }, "1", { [WISHES_OF_ANNOTATION]: "Deployment/web" });
    expect(wishing).toMatchObject({ state: "Ready", message: "2 pods fit: 2 in east" });
  }
});

test("pods of all namespaces run while replicas share the shards, join, and are killed", async () => {
  await shared(["first"]);
  await createAndRun("alone");
  const labelled = await clients().host.list(pods, { labelSelector: SLOT_LABEL });
  expect(labelled.items).toHaveLength(namespaces.length);

  const second = await replica("second");
  await shared(["first", "second"]);
  await createAndRun("two");

  await second.stop("SIGKILL");
  const afterKill = createAndRun("killed");
  await shared(["first"]);
  await afterKill;
  // The first shard's holder has nothing in hand that the others have.
  await second.start();
  await replica("third");
  await shared(["first", "second", "third"]);
  await createAndRun("three");

  await running().controller.stop("SIGKILL");
  const afterFirst = createAndRun("first-killed");
  await shared(["second", "third"]);
  await afterFirst;
});

test("no pod is lost or made twice when the number of shards changes", async () => {
  for (const process of replicas.values()) await process.stop();
  for (const count of [1, 4, 2]) {
    const before = [...replicas.values()];
    const next = await replica(`of-${count}`, count);
    const created = createAndRun(`count-${count}`);
    await Promise.all(before.map((process) => process.stop()));
    await shared([`of-${count}`], count);
    await created;
    for (const process of before) expect(process).not.toBe(next);
  }
});
