import { beforeAll, expect, test } from "vitest";
import { DELEGATE_ANNOTATION, virtualNodeName } from "../../../src/api/keys.ts";
import type { Job, Stored } from "../../../src/api/kubernetes.ts";
import { QUEUE_NAME_LABEL } from "../../../src/api/kueue.ts";
import { isTrue } from "../../../src/api/kueue-workload.ts";
import { jobs, pods } from "../../../src/kube/resources.ts";
import { stays, template } from "../../support/builders/workload.ts";
import { delegatedPod } from "../../support/delegated/pods.ts";
import { type KueueManager, startKueue } from "../../support/engines/kueue-manager.ts";
import { flavor } from "../../support/engines/kueue-objects.ts";
import {
  heldCheck,
  isOfJob,
  labelsIn,
  queueOf as makeQueue,
  PRIORITY_CLASSES,
  placesOf,
  type Submitted,
  submit as submitJob,
  workloadOf,
} from "../../support/engines/kueue-queues.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";

const host = hostCluster();
const PATIENT = { timeoutMs: 90_000, intervalMs: 300 };
let kueue: KueueManager;

beforeAll(async () => {
  kueue = await startKueue(host, { frameworks: ["batch/job", "pod", "deployment"] });
  afterFile(() => kueue.stop());
  await applyAll(host, [
    flavor("west", { "legation.dev/cluster": "west" }),
    flavor("east", { "legation.dev/cluster": "east" }),
    ...PRIORITY_CLASSES,
  ]);
}, 900_000);
useLegation();
const clients = useClients();

/** Makes the queue with a quota of CPU for each flavor, and a namespace with its LocalQueue. */
function queueOf(name: string, quotas: Readonly<Record<string, string>>, spec: object = {}): Promise<string> {
  const written = Object.fromEntries(Object.entries(quotas).map(([of, cpu]) => [of, { cpu }]));
  return makeQueue([host, memberCluster("west"), memberCluster("east")], name, written, { spec });
}

function submit(namespace: string, name: string, queue: string, options: Submitted = {}): Promise<Stored<Job>> {
  return submitJob(clients().host, namespace, name, queue, options);
}

function jobOf(namespace: string, name: string): Promise<Stored<Job>> {
  return clients().host.get(jobs, { namespace, name });
}

function places(namespace: string, job: string): Promise<string[]> {
  return placesOf(clients().host, namespace, job);
}

const RUNNING_IN = { west: `${virtualNodeName("west")} Running`, east: `${virtualNodeName("east")} Running` };

test("a whole Job has no member until it is admitted, and the flavor chooses it", async () => {
  const namespace = await queueOf("whole", { east: "4" });
  await submit(namespace, "first", "whole", { cpu: "2", whole: true });
  await eventuallyPasses(async () => {
    expect((await jobOf(namespace, "first")).status, kueue.output().slice(-2000)).toMatchObject({ active: 2 });
  }, PATIENT);
  const there = await clients().east.list(pods, { namespace });
  expect(there.items.map(({ spec }) => spec?.nodeSelector ?? {})).toEqual([{}, {}]);
  // No label puts it into a queue of the member's own Kueue.
  expect(Object.keys(there.items[0]?.metadata.labels ?? {}).filter((key) => key.includes("kueue"))).toEqual([]);
  await submit(namespace, "second", "whole", { cpu: "2", whole: true });
  await eventuallyPasses(async () => {
    const shown = await kubectl(host, [
      "get",
      "workloads.kueue.x-k8s.io",
      "-n",
      namespace,
      "-o",
      "jsonpath={.items[*].status.conditions[?(@.type=='QuotaReserved')].status}",
    ]);
    expect(shown.split(" ").sort()).toEqual(["False", "True"]);
  }, PATIENT);
  expect((await jobOf(namespace, "second")).metadata.annotations?.["legation.dev/cluster"]).toBeUndefined();
  await clients().host.delete(jobs, { namespace, name: "first" });
  await eventuallyPasses(
    async () => expect((await jobOf(namespace, "second")).status).toMatchObject({ active: 2 }),
    PATIENT,
  );
});

test("preemption ends a whole Job's pods in its member before another is admitted", async () => {
  const preemption = { withinClusterQueue: "LowerPriority" };
  const namespace = await queueOf("preempts", { west: "4" }, { preemption });
  await submit(namespace, "low", "preempts", { cpu: "2", whole: true, priority: "low" });
  await eventuallyPasses(
    async () => expect((await jobOf(namespace, "low")).status).toMatchObject({ active: 2 }),
    PATIENT,
  );
  await submit(namespace, "high", "preempts", { cpu: "2", whole: true, priority: "high" });
  await eventuallyPasses(
    async () => expect((await jobOf(namespace, "high")).status).toMatchObject({ active: 2 }),
    PATIENT,
  );
  const low = await jobOf(namespace, "low");
  expect(low.spec?.suspend).toBe(true);
  expect(low.status?.active ?? 0).toBe(0);
  const inWest = await clients().west.list(pods, { namespace });
  expect(new Set(inWest.items.filter(isOfJob("low")))).toEqual(new Set());
  // Both would be more than the quota.
  await clients().host.delete(jobs, { namespace, name: "high" });
  await eventuallyPasses(
    async () => expect((await jobOf(namespace, "low")).status).toMatchObject({ active: 2 }),
    PATIENT,
  );
});

test("a whole Job that is preempted before any of its pods ended goes on in another member", async () => {
  const preemption = { withinClusterQueue: "LowerPriority" };
  const namespace = await queueOf("whole-moves", { west: "4", east: "2" }, { preemption });
  const member = async (name: string): Promise<string | undefined> => {
    const { status, metadata } = await jobOf(namespace, name);
    return status?.active === 2 ? metadata.annotations?.["legation.dev/cluster"] : undefined;
  };
  await submit(namespace, "low", "whole-moves", { cpu: "1", whole: true, priority: "low" });
  await eventuallyPasses(async () => expect(await member("low")).toBe("west"), PATIENT);
  await submit(namespace, "high", "whole-moves", { cpu: "2", whole: true, priority: "high" });
  await eventuallyPasses(async () => {
    expect(await member("high")).toBe("west");
    expect(await member("low")).toBe("east");
  }, PATIENT);
  expect(await clients().west.find(jobs, { namespace, name: "low" })).toBeUndefined();
});

test("a preempted Job with delegated pods goes on in another member", async () => {
  const preemption = { withinClusterQueue: "LowerPriority" };
  const namespace = await queueOf("moves", { west: "4", east: "2" }, { preemption });
  await submit(namespace, "low", "moves", { cpu: "1", priority: "low" });
  await eventuallyPasses(
    async () => expect(await places(namespace, "low")).toEqual([RUNNING_IN.west, RUNNING_IN.west]),
    PATIENT,
  );
  await submit(namespace, "high", "moves", { cpu: "2", priority: "high" });
  await eventuallyPasses(async () => {
    expect(await places(namespace, "high")).toEqual([RUNNING_IN.west, RUNNING_IN.west]);
    expect(await places(namespace, "low")).toEqual([RUNNING_IN.east, RUNNING_IN.east]);
  }, PATIENT);
});

test("a pod group and a Deployment are admitted, and run in the member of their flavor", async () => {
  const namespace = await queueOf("pods", { east: "8" });
  const grouped = ["group-0", "group-1"].map((name) =>
    delegatedPod(namespace, name, {
      labels: { [QUEUE_NAME_LABEL]: "pods", "kueue.x-k8s.io/pod-group-name": "group" },
      annotations: { ...stays("running"), "kueue.x-k8s.io/pod-group-total-count": "2" },
      spec: { containers: [{ name: "main", image: "work:1", resources: { requests: { cpu: "1" } } }] },
    }),
  );
  for (const pod of grouped) await clients().host.create(pods, pod);
  const made = template({}, { [DELEGATE_ANNOTATION]: "true", ...stays("running") });
  const deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { namespace, name: "web", labels: { [QUEUE_NAME_LABEL]: "pods" } },
    spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: made },
  };
  await applyAll(host, [deployment]);
  await eventuallyPasses(async () => {
    expect(await placesOf(clients().host, namespace), kueue.output().slice(-2000)).toEqual(
      new Array(4).fill(RUNNING_IN.east),
    );
  }, PATIENT);
});

test("a pod that is preempted while a check is pending queues again", async () => {
  await heldCheck(host, "held");
  const namespace = await queueOf(
    "held-pods",
    { west: "2" },
    {
      preemption: { withinClusterQueue: "LowerPriority" },
      admissionChecksStrategy: { admissionChecks: [{ name: "held" }] },
    },
  );
  const create = async (name: "low" | "high"): Promise<void> => {
    const labels = labelsIn("held-pods", { priority: name });
    const main = { name: "main", image: "work:1", resources: { requests: { cpu: "2" } } };
    await clients().host.create(pods, delegatedPod(namespace, name, { labels, spec: { containers: [main] } }));
  };
  const hasQuota = async (name: string): Promise<boolean> =>
    isTrue(await workloadOf(clients().host, namespace, name), "QuotaReserved");
  await create("low");
  await eventuallyPasses(async () => expect(await hasQuota("low")).toBe(true), PATIENT);
  await create("high");
  await eventuallyPasses(
    async () => expect([await hasQuota("low"), await hasQuota("high")]).toEqual([false, true]),
    PATIENT,
  );
  await clients().host.delete(pods, { namespace, name: "high" });
  await eventuallyPasses(async () => expect(await hasQuota("low")).toBe(true), PATIENT);
});

test("64 pods are admitted together, in one member, or wait together", async () => {
  const namespace = await queueOf("gang", { west: "64", east: "32" });
  await submit(namespace, "large", "gang", { cpu: "1", pods: 64 });
  await eventuallyPasses(async () => {
    expect(await places(namespace, "large")).toEqual(new Array(64).fill(RUNNING_IN.west));
  }, PATIENT);
  await submit(namespace, "another", "gang", { cpu: "1", pods: 64 });
  await submit(namespace, "small", "gang", { cpu: "1", pods: 32 });
  await eventuallyPasses(async () => {
    expect(await places(namespace, "small")).toEqual(new Array(32).fill(RUNNING_IN.east));
  }, PATIENT);
  expect(await places(namespace, "another")).toEqual([]);
});

test("queues of a cohort borrow what another leaves, and reclaim it across members", async () => {
  const preemption = { reclaimWithinCohort: "Any" };
  const spec = { cohortName: "all", preemption };
  const lender = await queueOf("lender", { west: "4", east: "4" }, spec);
  const borrower = await queueOf("borrower", { west: "0", east: "0" }, spec);
  await submit(borrower, "one", "borrower", { cpu: "2" });
  await submit(borrower, "two", "borrower", { cpu: "2" });
  await eventuallyPasses(async () => {
    const found = [...(await places(borrower, "one")), ...(await places(borrower, "two"))].sort();
    expect(found).toEqual([RUNNING_IN.east, RUNNING_IN.east, RUNNING_IN.west, RUNNING_IN.west]);
  }, PATIENT);
  await submit(lender, "own", "lender", { cpu: "2" });
  await eventuallyPasses(async () => {
    expect(await places(lender, "own")).toHaveLength(2);
    const left = [...(await places(borrower, "one")), ...(await places(borrower, "two"))];
    expect(left.filter((place) => place.endsWith("Running"))).toHaveLength(2);
  }, PATIENT);
});
