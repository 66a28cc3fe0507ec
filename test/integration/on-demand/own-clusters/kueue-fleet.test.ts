import { beforeAll, expect, onTestFinished, test } from "vitest";
import { clusterOfNode, QUOTA_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { kueueCondition } from "../../../../src/api/kueue-workload.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { jobs, pods } from "../../../../src/kube/resources.ts";
import { isDeleting } from "../../../../src/pods/pod-state.ts";
import { ends } from "../../../support/builders/workload.ts";
import { freePort } from "../../../support/clusters/ports.ts";
import { startClusters } from "../../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../../support/clusters/types.ts";
import { startKueue } from "../../../support/engines/kueue-manager.ts";
import { type clusterQueue, flavor, queuesV1beta2, quotasOf } from "../../../support/engines/kueue-objects.ts";
import { queueOf as makeQueue, type Submitted, submit, workloadOf } from "../../../support/engines/kueue-queues.ts";
import { afterFile, cleanUpFile } from "../../../support/harness/after-file.ts";
import { clientOf } from "../../../support/harness/clients.ts";
import { applyAll, kubectl } from "../../../support/harness/kubectl.ts";
import { metricsOf } from "../../../support/harness/metrics-of.ts";
import { podsOf } from "../../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../../support/harness/wait.ts";
import { startLegation } from "../../../support/legation/start.ts";

const MEMBERS = ["west", "east", "north"] as const;
// Two nodes of each member.
const NODE_CPU = 32;
const MEMBER_CPU = 2 * NODE_CPU;
const FOLLOWS = { [QUOTA_ANNOTATION]: "follow" };
const NOTHING = Object.fromEntries(MEMBERS.map((name) => [name, { cpu: "0" }]));
const FULL = Object.fromEntries(MEMBERS.map((name) => [name, { cpu: String(MEMBER_CPU) }]));
const PATIENT = { timeoutMs: 180_000, intervalMs: 500 };
// The pods' own seconds on a lost node, in place of Kubernetes' five minutes.
const LEAVES_SOON = ["not-ready", "unreachable"].map((taint) => ({
  ...{ key: `node.kubernetes.io/${taint}`, operator: "Exists" as const },
  ...{ effect: "NoExecute" as const, tolerationSeconds: 3 },
}));
// Pods of a lost member have failed to their Job. Its pause before new ones is one of each index: ten seconds after the first failure.
const LARGE: Submitted = {
  pods: 64,
  spec: { completionMode: "Indexed", backoffLimitPerIndex: 5 },
  podSpec: { tolerations: LEAVES_SOON },
};
// Longer than a Job needs to replace lost pods, where others have room for them.
const RECOVERY_TIMEOUT = "40s";

let clusters: Clusters;
let host: Cluster;
let client: ClusterClient;
let members: ReadonlyMap<string, ClusterClient>;
let metricsPort: number;

beforeAll(async () => {
  const member = { nodes: [{ count: 2, cpu: String(NODE_CPU) }] };
  const monitor = ["--node-monitor-period=1s", "--node-monitor-grace-period=30s", "--node-eviction-rate=100"];
  // By default 20 requests a second: the host's Job controller would be all that is measured.
  const quick = ["--kube-api-qps=300", "--kube-api-burst=500", "--concurrent-job-syncs=20"];
  clusters = await startClusters({
    names: ["host", ...MEMBERS],
    clusters: {
      host: { nodes: [], controllerManagerFlags: [...monitor, ...quick] },
      west: member,
      east: member,
      north: member,
    },
  });
  afterFile(() => clusters.stop());
  host = clusters.get("host");
  const kueue = await startKueue(host, {
    frameworks: ["batch/job"],
    configuration: {
      fairSharing: { preemptionStrategies: ["LessThanOrEqualToFinalShare", "LessThanInitialShare"] },
      waitForPodsReady: {
        ...{ timeout: "5m", recoveryTimeout: RECOVERY_TIMEOUT, blockAdmission: false },
        requeuingStrategy: { backoffBaseSeconds: 1 },
      },
    },
  });
  afterFile(() => kueue.stop());
  await applyAll(
    host,
    MEMBERS.map((name) => flavor(name, { "legation.dev/cluster": name })),
  );
  metricsPort = await freePort();
  const running = await startLegation({
    host,
    members: Object.fromEntries(MEMBERS.map((name) => [name, clusters.get(name)])),
    labels: Object.fromEntries(MEMBERS.map((name) => [name, "site=all"])),
    controllerFlags: [`--health-listen=127.0.0.1:${metricsPort}`],
    restart: true,
  });
  afterFile(() => running.stop());
  const probe = JSON.stringify({ spec: { probe: { periodSeconds: 2, timeoutSeconds: 4, failureThreshold: 2 } } });
  await kubectl(host, ["patch", "clusters.legation.dev", ...MEMBERS, "--type=merge", `--patch=${probe}`]);
  client = clientOf(host);
  members = new Map(MEMBERS.map((name) => [name, clientOf(clusters.get(name))]));
  for (const each of [client, ...members.values()]) afterFile(() => each.close());
  return cleanUpFile;
}, 900_000);

function queueOf(
  name: string,
  ...[quotas, options]: [Parameters<typeof clusterQueue>[1], Parameters<typeof clusterQueue>[2]?]
): Promise<string> {
  return makeQueue([host, ...MEMBERS.map((member) => clusters.get(member))], name, quotas, options);
}

interface Queue {
  readonly quotas: ReturnType<typeof quotasOf>;
  /** Cores that workloads hold, by flavor. */
  readonly used: Readonly<Record<string, number>>;
}

async function read(name: string): Promise<Queue> {
  const queue = await client.get(queuesV1beta2, { name });
  const used = (queue.status?.flavorsReservation ?? []).map((one) => [one.name, Number(one.resources?.[0]?.total)]);
  return { quotas: quotasOf(queue), used: Object.fromEntries(used) };
}

/** Counts the pods in each member that have not ended. */
async function countInMembers(namespace: string): Promise<Record<string, number>> {
  const counts = [...members].map(async ([name, member]) => {
    const { items } = await member.list(pods, { namespace, fieldSelector: "status.phase!=Succeeded" });
    return [name, items.length] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

/** Returns the running pods of the host that nobody deletes, by member. */
async function runningByMember(namespace: string): Promise<ReadonlyMap<string, readonly Stored<Pod>[]>> {
  const all = await podsOf(client, namespace);
  const running = all.filter((pod) => pod.status?.phase === "Running" && !isDeleting(pod));
  return Map.groupBy(running, ({ spec }) => clusterOfNode(spec?.nodeName) ?? "");
}

async function countRunning(namespace: string): Promise<number> {
  return [...(await runningByMember(namespace)).values()].reduce((sum, { length }) => sum + length, 0);
}

test("two cohorts share three members by their weights, and the greater use is preempted", async () => {
  const spec = (cohortName: string): object => ({ cohortName, preemption: { reclaimWithinCohort: "Any" } });
  const weights = { research: "3", product: "1" };
  const cohorts = Object.entries(weights).map(([name, weight]) => ({
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "Cohort",
    metadata: { name },
    spec: { parentName: "fleet", fairSharing: { weight } },
  }));
  await applyAll(host, cohorts);
  onTestFinished(async () => {
    await kubectl(host, ["delete", "cohorts.kueue.x-k8s.io", ...Object.keys(weights)]);
  });
  // The members are lent to both.
  await queueOf("pool", NOTHING, { annotations: FOLLOWS, spec: { cohortName: "fleet" } });
  const research = await queueOf("research", NOTHING, { spec: spec("research") });
  const product = await queueOf("product", NOTHING, { spec: spec("product") });
  await eventuallyPasses(async () => expect((await read("pool")).quotas).toEqual(FULL), PATIENT);
  const twelve = async (namespace: string, queue: string): Promise<void> => {
    for (let index = 0; index < 12; index += 1) {
      await submit(client, namespace, `job-${index}`, queue, { pods: 1, cpu: String(NODE_CPU / 2) });
    }
  };
  await twelve(research, "research");
  await eventuallyPasses(async () => expect(await countRunning(research)).toBe(12), PATIENT);
  await twelve(product, "product");
  await eventuallyPasses(async () => {
    expect([await countRunning(research), await countRunning(product)]).toEqual([9, 3]);
    for (const name of MEMBERS) {
      const inBoth = [await countInMembers(research), await countInMembers(product)].map((counts) => counts[name] ?? 0);
      expect(inBoth[0]).toBe(4 - (inBoth[1] ?? 0));
    }
  }, PATIENT);
});

test("a workload that is spread over members keeps its quota when one is lost, and its pods go to the others", async () => {
  await applyAll(host, [flavor("all", { site: "all" })]);
  onTestFinished(async () => void (await kubectl(host, ["delete", "resourceflavors.kueue.x-k8s.io", "all"])));
  const namespace = await queueOf("spread", { all: { cpu: "0" } }, { annotations: FOLLOWS });
  const all = { all: { cpu: String(3 * MEMBER_CPU) } };
  await eventuallyPasses(async () => expect((await read("spread")).quotas).toEqual(all), PATIENT);
  await submit(client, namespace, "large", "spread", LARGE);
  await eventuallyPasses(async () => expect(await countRunning(namespace)).toBe(64), PATIENT);
  const [lost = "", there = []] = [...(await runningByMember(namespace))].sort(([one], [other]) =>
    one < other ? -1 : 1,
  )[0] ?? ["", []];
  expect(there.length).toBeLessThan(64);
  const { proxy } = clusters.get(lost);
  await proxy.cut();
  onTestFinished(() => proxy.heal());
  const left = String(2 * MEMBER_CPU + there.length);
  await eventuallyPasses(async () => expect((await read("spread")).quotas).toEqual({ all: { cpu: left } }), PATIENT);
  await eventuallyPasses(async () => {
    // No quota that falls has it evicted.
    expect(kueueCondition(await workloadOf(client, namespace, "large"), "Evicted")).toBeUndefined();
    expect((await read("spread")).used).toEqual({ all: 64 });
    const running = await runningByMember(namespace);
    expect(running.get(lost)).toBeUndefined();
    expect(await countRunning(namespace)).toBe(64);
  }, PATIENT);
  await proxy.heal();
  await eventuallyPasses(async () => {
    expect(await read("spread")).toEqual({ quotas: all, used: { all: 64 } });
    const counts = await countInMembers(namespace);
    expect([counts[lost], Object.values(counts).reduce((sum, count) => sum + count)]).toEqual([0, 64]);
    expect(await podsOf(client, namespace)).toHaveLength(64);
  }, PATIENT);
}, 600_000);

test("a workload of 64 pods in a lost member is queued again by another flavor, and counted once", async () => {
  const namespace = await queueOf("pinned", NOTHING, { annotations: FOLLOWS });
  await eventuallyPasses(async () => expect((await read("pinned")).quotas).toEqual(FULL), PATIENT);
  await submit(client, namespace, "large", "pinned", LARGE);
  await eventuallyPasses(async () => expect((await runningByMember(namespace)).get("west")).toHaveLength(64), PATIENT);
  const { proxy } = clusters.get("west");
  await proxy.cut();
  onTestFinished(() => proxy.heal());
  await eventuallyPasses(async () => {
    // Quota does not evict what runs: Kueue does once pods are not ready for its recoveryTimeout.
    expect((await runningByMember(namespace)).get("east")).toHaveLength(64);
    expect(await read("pinned")).toMatchObject({
      quotas: { ...FULL, west: { cpu: "0" } },
      used: { west: 0, east: 64, north: 0 },
    });
  }, PATIENT);
  await proxy.heal();
  await eventuallyPasses(async () => {
    expect(await read("pinned")).toMatchObject({ quotas: FULL, used: { west: 0, east: 64, north: 0 } });
    expect(await countInMembers(namespace)).toEqual({ west: 0, east: 64, north: 0 });
    expect(await podsOf(client, namespace)).toHaveLength(64);
  }, PATIENT);
}, 600_000);

const WORKLOADS = 2_000;
const AT_ONCE = 20;
const WITHIN_MS = 20 * 60_000;
const MIB = 2 ** 20;

test("2,000 workloads queue over three members, none beyond the quota, and all end", async () => {
  const check = {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "AdmissionCheck",
    metadata: { name: "room" },
    spec: { controllerName: "legation.dev/room" },
  };
  await applyAll(host, [check]);
  const spec = { admissionChecksStrategy: { admissionChecks: [{ name: "room" }] } };
  const namespace = await queueOf("many", NOTHING, { annotations: FOLLOWS, spec });
  // A single request deletes all Jobs: kubectl deletes one after the other, and each for its own time.
  onTestFinished(async () => {
    const raw = `/apis/batch/v1/namespaces/${namespace}/jobs?propagationPolicy=Background`;
    await kubectl(host, ["delete", `--raw=${raw}`]);
  });
  await eventuallyPasses(async () => expect((await read("many")).quotas).toEqual(FULL), PATIENT);
  const begun = performance.now();
  const briefly = { ...ends(0), "kwok.test/ends-after": "2s" };
  const names = Array.from({ length: WORKLOADS }, (_, index) => `job-${index}`);
  const creating = Array.from({ length: AT_ONCE }, async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      const count = name.endsWith("0") ? 4 : 1;
      await submit(client, namespace, name, "many", { pods: count, annotations: briefly });
    }
  });
  const beyond: string[] = [];
  const peak = { heapMib: 0, cores: 0, waiting: 0 };
  await eventuallyPasses(
    async () => {
      const metrics = await metricsOf(metricsPort);
      peak.heapMib = Math.max(peak.heapMib, Math.round((metrics("nodejs_heap_size_used_bytes") ?? 0) / MIB));
      const { status } = await client.get(queuesV1beta2, { name: "many" });
      const { pendingWorkloads = 0, reservingWorkloads = 0 } = status ?? {};
      peak.waiting = Math.max(peak.waiting, pendingWorkloads);
      const { quotas, used } = await read("many");
      const counts = await countInMembers(namespace);
      peak.cores = Math.max(
        peak.cores,
        Object.values(used).reduce((sum, cores) => sum + cores, 0),
      );
      for (const name of MEMBERS) {
        const most = Math.max(used[name] ?? 0, counts[name] ?? 0);
        if (most > Number(quotas[name]?.cpu)) beyond.push(`${name}: ${most} of ${quotas[name]?.cpu}`);
      }
      // A list of all Jobs is megabytes, and the API server has enough to do.
      expect([pendingWorkloads, reservingWorkloads]).toEqual([0, 0]);
      const { items } = await client.list(jobs, { namespace });
      const ended = items.filter((job) => (job.status?.conditions ?? []).some(({ type }) => type === "Complete"));
      expect(ended).toHaveLength(WORKLOADS);
    },
    { timeoutMs: WITHIN_MS, intervalMs: 1_000 },
  );
  await Promise.all(creating);
  const seconds = Math.round((performance.now() - begun) / 1000);
  const metrics = await metricsOf(metricsPort);
  const keys = ["room", "queue-quotas"].map((name) => {
    const of = `{name="${name}",controller="${name}"}`;
    return `${name} ${metrics(`workqueue_adds_total${of}`)} keys, ${metrics(`workqueue_work_duration_seconds_sum${of}`)} s`;
  });
  process.stderr.write(`kueue-fleet: ${JSON.stringify({ seconds, ...peak, keys })}\n`);
  expect(beyond).toEqual([]);
  expect(peak.waiting).toBeGreaterThan(WORKLOADS / 2);
  expect(peak.heapMib).toBeLessThan(512);
}, 1_500_000);
