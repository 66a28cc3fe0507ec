import { beforeAll, expect, onTestFinished, test } from "vitest";
import {
  QUOTA_ANNOTATION,
  QUOTA_FLOOR_ANNOTATION,
  QUOTA_SHARE_ANNOTATION,
  virtualNodeName,
} from "../../../src/api/keys.ts";
import type { QueueStatus } from "../../../src/cli/explain/queues.ts";
import { events, jobs, nodes, pods } from "../../../src/kube/resources.ts";
import { stays } from "../../support/builders/workload.ts";
import { freePort } from "../../support/clusters/ports.ts";
import { delegatedPod } from "../../support/delegated/pods.ts";
import { type KueueManager, startKueue } from "../../support/engines/kueue-manager.ts";
import { type clusterQueue, flavor, queuesV1beta2, quotasOf } from "../../support/engines/kueue-objects.ts";
import {
  heldCheck,
  queueOf as makeQueue,
  patchStatus,
  submit as submitJob,
} from "../../support/engines/kueue-queues.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { installDefinitions, removeDefinitions } from "../../support/harness/definitions.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { inPhase, podsOf, podThat } from "../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";
import { bindClusterRole } from "../../support/legation/access.ts";
import { legationOn } from "../../support/legation/process.ts";
import { expressions } from "../../support/monitoring/expressions.ts";

const host = hostCluster();
const FOLLOWS = { [QUOTA_ANNOTATION]: "follow" };
const PATIENT = { timeoutMs: 60_000, intervalMs: 300 };
/** Cores of all nodes of each member. */
const cores = { west: 0, east: 0 };
const DEACTIVATED = "is deactivated: Kueue leaves it alone until its Workload has spec.active: true";
const NO_CPU = { cpu: "0" };
let kueue: KueueManager;
let metricsPort: number;

// The controller looks for the API when it starts, and once a minute.
beforeAll(async () => {
  metricsPort = await freePort();
  const metrics = { bindAddress: `127.0.0.1:${metricsPort}`, enableClusterQueueResources: true };
  kueue = await startKueue(host, { frameworks: ["batch/job"], configuration: { metrics } });
  afterFile(() => kueue.stop());
  await applyAll(host, [
    flavor("west", { "legation.dev/cluster": "west" }),
    flavor("east", { "legation.dev/cluster": "east" }),
    flavor("own", { disk: "own" }),
  ]);
}, 900_000);
useLegation();
const clients = useClients();
beforeAll(async () => {
  for (const name of ["west", "east"] as const) {
    const { items } = await clients()[name].list(nodes);
    cores[name] = items.reduce((sum, { status }) => sum + Number(status?.allocatable?.cpu), 0);
  }
});

async function quotas(queue: string): Promise<ReturnType<typeof quotasOf>> {
  return quotasOf(await clients().host.get(queuesV1beta2, { name: queue }));
}

/** Makes the queue, and a namespace with its LocalQueue. */
function queueOf(
  name: string,
  ...[written, options]: [Parameters<typeof clusterQueue>[1], Parameters<typeof clusterQueue>[2]?]
): Promise<string> {
  return makeQueue([host, memberCluster("west"), memberCluster("east")], name, written, options);
}

function submit(namespace: string, name: string, queue: string, parallelism: number, cpu: string): Promise<unknown> {
  return submitJob(clients().host, namespace, name, queue, { pods: parallelism, cpu });
}

async function isSuspended(namespace: string, name: string): Promise<boolean> {
  const { spec } = await clients().host.get(jobs, { namespace, name });
  return spec?.suspend === true;
}

test("quotas of flavors that select members are what members have, and a Job that fits is admitted", async () => {
  const namespace = await queueOf("teams", { west: NO_CPU, own: { cpu: "7" } }, { annotations: FOLLOWS });
  await eventuallyPasses(async () => {
    expect(await quotas("teams")).toEqual({ west: { cpu: String(cores.west) }, own: { cpu: "7" } });
  }, PATIENT);
  await submit(namespace, "sweep", "teams", 2, "4");
  await eventuallyPasses(async () => {
    const found = (await podsOf(clients().host, namespace)).map(({ spec, status }) => [spec?.nodeName, status?.phase]);
    const running = [virtualNodeName("west"), "Running"];
    expect(found, kueue.output().slice(-2000)).toEqual([running, running]);
  }, PATIENT);
  // Pods that a queue admitted are no loss of room for queues.
  expect(await quotas("teams")).toMatchObject({ west: { cpu: String(cores.west) } });
});

test("a queue that does not ask keeps its quotas", async () => {
  await queueOf("others", { west: NO_CPU });
  await queueOf("asks", { west: NO_CPU }, { annotations: FOLLOWS });
  await eventuallyPasses(
    async () => expect(await quotas("asks")).toEqual({ west: { cpu: String(cores.west) } }),
    PATIENT,
  );
  expect(await quotas("others")).toEqual({ west: NO_CPU });
});

test("queues divide a flavor by their shares, and none falls below its floor", async () => {
  await queueOf("large", { east: NO_CPU }, { annotations: { ...FOLLOWS, [QUOTA_SHARE_ANNOTATION]: "75%" } });
  await queueOf("small", { east: NO_CPU }, { annotations: FOLLOWS });
  await eventuallyPasses(async () => {
    expect(await quotas("large")).toEqual({ east: { cpu: String(cores.east * 0.75) } });
    expect(await quotas("small")).toEqual({ east: { cpu: String(cores.east * 0.25) } });
  }, PATIENT);
  const floor = { metadata: { annotations: { [QUOTA_FLOOR_ANNOTATION]: `cpu=${cores.east}` } } };
  await clients().host.patch(queuesV1beta2, { name: "small" }, { type: "merge", body: floor });
  await eventuallyPasses(
    async () => expect(await quotas("small")).toEqual({ east: { cpu: String(cores.east) } }),
    PATIENT,
  );
});

test("pods that no queue admitted take room away", async () => {
  const namespace = await queueOf("beside", { west: NO_CPU }, { annotations: FOLLOWS });
  await eventuallyPasses(
    async () => expect(await quotas("beside")).toEqual({ west: { cpu: String(cores.west) } }),
    PATIENT,
  );
  const main = { name: "main", image: "work:1", resources: { requests: { cpu: "8" } } };
  const spec = { containers: [main], nodeSelector: { "legation.dev/cluster": "west" } };
  await clients().host.create(pods, delegatedPod(namespace, "plain", { spec, annotations: stays("running") }));
  await podThat(clients().host, namespace, "plain", inPhase("Running"));
  await eventuallyPasses(
    async () => expect(await quotas("beside")).toEqual({ west: { cpu: String(cores.west - 8) } }),
    PATIENT,
  );
});

test("a cordoned member admits nothing more, evicts nothing, and says so", async () => {
  const namespace = await queueOf("lossy", { west: NO_CPU }, { annotations: FOLLOWS });
  await eventuallyPasses(
    async () => expect(await quotas("lossy")).toEqual({ west: { cpu: String(cores.west) } }),
    PATIENT,
  );
  await submit(namespace, "early", "lossy", 2, "4");
  await eventuallyPasses(async () => {
    const found = await podsOf(clients().host, namespace);
    expect(found.map(({ status }) => status?.phase)).toEqual(["Running", "Running"]);
  }, PATIENT);
  const cordon = async (unschedulable: boolean): Promise<void> => {
    const body = { spec: { unschedulable } };
    await clients().host.patch(nodes, { name: virtualNodeName("west") }, { type: "merge", body });
  };
  await cordon(true);
  onTestFinished(() => cordon(false));
  await eventuallyPasses(async () => expect(await quotas("lossy")).toEqual({ west: { cpu: "8" } }), PATIENT);
  await submit(namespace, "late", "lossy", 1, "1");
  await eventuallyPasses(async () => {
    const found = await clients().host.list(events, { fieldSelector: "involvedObject.kind=ClusterQueue" });
    const told = found.items.filter(({ reason }) => reason === "QuotaReduced").map(({ message }) => message);
    expect(told).toEqual([expect.stringContaining(`west: cpu ${cores.west} -> 8; what runs stays`)]);
  }, PATIENT);
  expect(await isSuspended(namespace, "late")).toBe(true);
  expect(await isSuspended(namespace, "early")).toBe(false);
  await cordon(false);
  await eventuallyPasses(async () => expect(await isSuspended(namespace, "late")).toBe(false), PATIENT);
});

test("a CapacityProvider that names Legation has what members have", async () => {
  const path = "test/support/engines/kueue/capacityproviders.yaml";
  await installDefinitions(host, path);
  onTestFinished(() => removeDefinitions(host, path));
  const provider = { apiVersion: "kueue.x-k8s.io/v1alpha1", kind: "CapacityProvider", metadata: { name: "members" } };
  const spec = { controllerName: "legation.dev/members", orchestratedFlavors: [{ name: "east" }] };
  await applyAll(host, [{ ...provider, spec }]);
  // The controller looks for the API once a minute.
  await eventuallyPasses(
    async () => {
      const shown = await kubectl(host, ["get", "capacityproviders", "members", "-o", "jsonpath={.status}"]);
      const { capacity, conditions } = JSON.parse(shown === "" ? "{}" : shown);
      expect(capacity?.flavors).toMatchObject([{ name: "east", resources: { cpu: String(cores.east) } }]);
      expect(conditions).toMatchObject([{ type: "CapacitySynchronized", status: "True" }]);
    },
    { timeoutMs: 120_000, intervalMs: 500 },
  );
}, 180_000);

test("an annotation that cannot be read is named in an event, and changes nothing", async () => {
  const annotations = { ...FOLLOWS, [QUOTA_SHARE_ANNOTATION]: "most" };
  await queueOf("misspelt", { west: { cpu: "3" } }, { annotations });
  await eventuallyPasses(async () => {
    const found = await clients().host.list(events, { fieldSelector: "involvedObject.name=misspelt" });
    expect(found.items.map(({ message }) => message)).toEqual([
      'the annotation legation.dev/quota-share is "most"; write a percentage from 0% to 100%, such as "80%"',
    ]);
  }, PATIENT);
  expect(await quotas("misspelt")).toEqual({ west: { cpu: "3" } });
});

interface Shown {
  readonly queues: readonly QueueStatus[];
}

/** Returns the queue as `legation status` shows it, and its text. */
async function statusOf(queue: string): Promise<{ readonly shown: QueueStatus | undefined; readonly text: string }> {
  const { code, stdout, stderr } = await legationOn(host, "status", "-o", "json");
  expect(code, stderr).toBe(0);
  const { queues } = JSON.parse(stdout) as Shown;
  const { stdout: text } = await legationOn(host, "status");
  return { shown: queues.find(({ name }) => name === queue), text };
}

test("status shows what a queue has, who waits in it, why, and what is in the way", async () => {
  const namespace = await queueOf("watched", { west: NO_CPU }, { annotations: FOLLOWS });
  await eventuallyPasses(
    async () => expect(await quotas("watched")).toEqual({ west: { cpu: String(cores.west) } }),
    PATIENT,
  );
  await submit(namespace, "early", "watched", 1, String(cores.west - 1));
  await eventuallyPasses(async () => expect(await isSuspended(namespace, "early")).toBe(false), PATIENT);
  await submit(namespace, "late", "watched", 1, "4");
  const waitsFor = `waits for 4 cpu of flavor west: ${cores.west - 1} of ${cores.west} are used by queue watched`;
  await eventuallyPasses(async () => {
    const { shown, text } = await statusOf("watched");
    expect(shown).toMatchObject({
      ...{ followsMembers: true, admitted: 1, pending: 1 },
      flavors: [{ name: "west", members: ["west"], quotas: [{ used: cores.west - 1, nominal: cores.west }] }],
      waiting: [{ namespace, kind: "Job", name: "late", waitsFor }],
    });
    expect(shown?.waiting[0]?.why).toEqual([
      expect.stringContaining("insufficient unused quota for cpu in flavor west"),
    ]);
    expect(text).toContain(`Job ${namespace}/late waits in watched for `);
    expect(text).toContain(`  ${waitsFor}\n`);
  }, PATIENT);
});

test("status tells what an admission check says of a workload that has quota", async () => {
  await heldCheck(host, "slow");
  const spec = { admissionChecksStrategy: { admissionChecks: [{ name: "slow" }] } };
  const namespace = await queueOf("checked", { own: { cpu: "7" } }, { spec });
  await submit(namespace, "held", "checked", 1, "1");
  await eventuallyPasses(async () => {
    const { shown } = await statusOf("checked");
    expect(shown).toMatchObject({
      pending: 1,
      waiting: [{ name: "held", waitsFor: "has quota, and waits for admission check slow" }],
    });
  }, PATIENT);
  const { shown } = await statusOf("checked");
  const lastTransitionTime = new Date().toISOString();
  const admissionChecks = [{ name: "slow", state: "Pending", message: "east: asks its owner", lastTransitionTime }];
  const workload = ["workloads.kueue.x-k8s.io", shown?.waiting[0]?.workload ?? "", "-n", namespace];
  await patchStatus(host, workload, { admissionChecks });
  const said = await statusOf("checked");
  expect(said.shown?.waiting[0]?.why).toEqual(["admission check slow: east: asks its owner"]);
});

test("a workload that was deactivated is shown, and Kueue has each series that panels of queues ask for", async () => {
  const namespace = await queueOf("ended", { own: { cpu: "7" } });
  await submit(namespace, "unwanted", "ended", 1, "1");
  await eventuallyPasses(async () => expect(await isSuspended(namespace, "unwanted")).toBe(false), PATIENT);
  const name = (await kubectl(host, ["get", "workloads.kueue.x-k8s.io", "-n", namespace, "-o", "name"])).trim();
  await kubectl(host, [
    "patch",
    name,
    "-n",
    namespace,
    "--type=merge",
    "-p",
    JSON.stringify({ spec: { active: false } }),
  ]);
  await eventuallyPasses(async () => {
    const { shown } = await statusOf("ended");
    expect(shown).toMatchObject({ pending: 0, waiting: [{ name: "unwanted", waitsFor: DEACTIVATED }] });
  }, PATIENT);
  await submit(namespace, "too-large", "ended", 1, "8");
  await eventuallyPasses(async () => {
    const { shown } = await statusOf("ended");
    const waitsFor = "waits for 8 cpu of flavor own: more than the 7 of queue ended";
    expect(shown?.waiting).toMatchObject([{ name: "too-large", waitsFor }, { name: "unwanted" }]);
  }, PATIENT);
  await kubectl(host, ["create", "serviceaccount", "scraper", "-n", namespace]);
  await bindClusterRole(host, "cluster-admin", { kind: "User", name: `system:serviceaccount:${namespace}:scraper` });
  const token = (await kubectl(host, ["create", "token", "scraper", "-n", namespace])).trim();
  const server = [`--server=https://127.0.0.1:${metricsPort}`, "--insecure-skip-tls-verify", `--token=${token}`];
  const series = await kubectl(host, ["get", "--raw", "/metrics", ...server], { kubeconfig: "/dev/null" });
  const asked = expressions().flatMap(({ expr }) => [...expr.matchAll(/\bkueue_\w+/g)].map(([metric]) => metric));
  expect(asked).not.toEqual([]);
  for (const metric of asked) expect(series).toContain(`\n${metric}{`);
});
