import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import {
  CLUSTER_ANNOTATION,
  DELEGATE_ANNOTATION,
  QUOTA_ANNOTATION,
  virtualNodeName,
  WHOLE_KEY,
} from "../../../src/api/keys.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { isTrue } from "../../../src/api/kueue-workload.ts";
import { nodes, pods, type Resource } from "../../../src/kube/resources.ts";
import { stays } from "../../support/builders/workload.ts";
import { type KueueManager, startKueue } from "../../support/engines/kueue-manager.ts";
import { flavor, queuesV1beta2, quotasOf } from "../../support/engines/kueue-objects.ts";
import {
  labelsIn,
  queueOf as makeQueue,
  PRIORITY_CLASSES,
  placesOf,
  type Submitted,
  workloadOf,
} from "../../support/engines/kueue-queues.ts";
import { startOperator } from "../../support/engines/operator.ts";
import { ensurePrograms } from "../../support/engines/programs.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { podsOf } from "../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";
import { allowTypes, forbidTypes } from "../../support/legation/allow-types.ts";

const host = hostCluster();
const NAME = "jobsets.jobset.x-k8s.io";
const PATIENT = { timeoutMs: 120_000, intervalMs: 500 };
const LOWER = { preemption: { withinClusterQueue: "LowerPriority" } };
const jobSets: Resource<AnyObject> = {
  ...{ group: "jobset.x-k8s.io", version: "v1alpha2", plural: "jobsets", kind: "JobSet", namespaced: true },
};
let kueue: KueueManager;

// JobSet's controller runs on the host for delegated pods, and in both members for whole JobSets.
beforeAll(async () => {
  const folder = await ensurePrograms("jobset", () => {});
  const manifests = join(folder, "config", "default");
  for (const cluster of [host, memberCluster("west"), memberCluster("east")]) {
    const directory = mkdtempSync(join(tmpdir(), "legation-jobset-"));
    afterFile(async () => rmSync(directory, { recursive: true, force: true }));
    const operator = await startOperator({ host: cluster, program: join(folder, "jobset"), manifests, directory });
    afterFile(() => operator.stop());
  }
  kueue = await startKueue(host, { frameworks: ["jobset.x-k8s.io/jobset"] });
  afterFile(() => kueue.stop());
  await applyAll(host, [
    ...["west", "east"].map((name) => flavor(name, { "legation.dev/cluster": name })),
    ...PRIORITY_CLASSES,
  ]);
}, 900_000);
useLegation();
const clients = useClients();
beforeAll(async () => {
  const joined = { host, members: { west: memberCluster("west"), east: memberCluster("east") } };
  await allowTypes([NAME], joined);
  afterFile(() => forbidTypes([NAME], joined));
});

/** Makes a queue with a quota of cores for each flavor. */
async function queueOf(name: string, cpu: Readonly<Record<string, string>>, spec: object = {}): Promise<string> {
  const quotas = Object.fromEntries(Object.entries(cpu).map(([of, cores]) => [of, { cpu: cores }]));
  const namespace = await makeQueue([host, memberCluster("west"), memberCluster("east")], name, quotas, { spec });
  onTestFinished(async () => void (await kubectl(host, ["delete", "jobsets", "--all", "-n", namespace])));
  return namespace;
}

/** Creates a JobSet of a leader and two workers, unless `pods` says otherwise, which run until it is deleted. */
async function submit(namespace: string, name: string, queue: string, options: Submitted = {}): Promise<void> {
  const { whole = false, cpu = "1", pods: workers = 2 } = options;
  const containers = [{ name: "main", image: "localhost/busybox:1", resources: { requests: { cpu } } }];
  const annotations = { ...stays("running"), ...(whole ? {} : { [DELEGATE_ANNOTATION]: "true" }) };
  const template = { metadata: { annotations }, spec: { restartPolicy: "Never", containers } };
  const job = (count: number): object => ({
    spec: { completionMode: "Indexed", completions: count, parallelism: count, backoffLimit: 0, template },
  });
  await clients().host.create(jobSets, {
    apiVersion: "jobset.x-k8s.io/v1alpha2",
    kind: "JobSet",
    metadata: {
      namespace,
      name,
      labels: labelsIn(queue, options),
      annotations: whole ? { [WHOLE_KEY]: "true" } : {},
    },
    spec: {
      suspend: true,
      replicatedJobs: [
        { name: "leader", replicas: 1, template: job(1) },
        { name: "worker", replicas: 1, template: job(workers) },
      ],
    },
  });
}

/** Waits until a whole JobSet runs its three pods in the member, as its status on the host says, and nothing of it elsewhere. */
async function runsIn(member: "west" | "east", namespace: string, name: string): Promise<void> {
  await eventuallyPasses(async () => {
    const found: Stored<AnyObject> = await clients().host.get(jobSets, { namespace, name });
    const said = kueue.output().slice(-1500);
    expect(found.metadata.annotations?.[CLUSTER_ANNOTATION], said).toBe(member);
    expect(found).toMatchObject({ spec: { suspend: false } });
    for (const one of ["west", "east"] as const) {
      const own = (await podsOf(clients()[one], namespace)).filter(
        ({ metadata }) => metadata.labels?.["jobset.sigs.k8s.io/jobset-name"] === name,
      );
      expect(own.map(({ status }) => status?.phase)).toEqual(one === member ? new Array(3).fill("Running") : []);
    }
    expect(found).toMatchObject({ status: { replicatedJobsStatus: [{ active: 1 }, { active: 1 }] } });
  }, PATIENT);
}

test("a whole JobSet has no member until it is admitted, and the flavor chooses it", async () => {
  const namespace = await queueOf("whole-sets", { east: "3" });
  await submit(namespace, "first", "whole-sets", { whole: true });
  await runsIn("east", namespace, "first");
  expect(await podsOf(clients().host, namespace)).toEqual([]);
  // No key of Kueue has a queue of the member count it again, and no node there has the flavor's label.
  const copy = JSON.stringify(await clients().east.get(jobSets, { namespace, name: "first" }));
  expect(copy.replaceAll(/"managedFields":\[.*?\]/gs, "")).not.toContain("kueue.x-k8s.io/");
  expect(copy).not.toContain('"legation.dev/cluster":"east"');
  await submit(namespace, "second", "whole-sets", { whole: true });
  await eventuallyPasses(async () => {
    expect(isTrue(await workloadOf(clients().host, namespace, "second"), "QuotaReserved")).toBe(false);
  }, PATIENT);
  const second = await clients().host.get(jobSets, { namespace, name: "second" });
  expect(second.metadata.annotations?.[CLUSTER_ANNOTATION]).toBeUndefined();
  await clients().host.delete(jobSets, { namespace, name: "first" });
  await runsIn("east", namespace, "second");
});

test("a whole JobSet that is preempted is suspended there, and goes on in the member of its next flavor", async () => {
  const namespace = await queueOf("moved-sets", { west: "6", east: "3" }, LOWER);
  await submit(namespace, "low", "moved-sets", { whole: true, priority: "low" });
  await runsIn("west", namespace, "low");
  // The first flavor alone has enough for each of its pods.
  await submit(namespace, "high", "moved-sets", { whole: true, priority: "high", cpu: "2" });
  await runsIn("west", namespace, "high");
  await runsIn("east", namespace, "low");
});

test("a JobSet with delegated pods is admitted to its flavor's member, and preempted there", async () => {
  const namespace = await queueOf("plain-sets", { west: "3" }, LOWER);
  const inWest = new Array(3).fill(`${virtualNodeName("west")} Running`);
  await submit(namespace, "low", "plain-sets", { priority: "low" });
  await eventuallyPasses(async () => {
    expect(await placesOf(clients().host, namespace), kueue.output().slice(-1500)).toEqual(inWest);
  }, PATIENT);
  await submit(namespace, "high", "plain-sets", { priority: "high" });
  await eventuallyPasses(async () => {
    expect(await placesOf(clients().host, namespace)).toEqual(inWest);
    const names = (await podsOf(clients().west, namespace)).map(({ metadata }) => metadata.name);
    expect(names.every((name) => name.startsWith("high-"))).toBe(true);
    expect(names).toHaveLength(3);
  }, PATIENT);
});

test("pods of whole JobSets are their queue's, also in a member that takes no more of them", async () => {
  const namespace = await queueOf("followed-sets", { west: "0", east: "3" });
  await submit(namespace, "first", "followed-sets", { whole: true });
  await runsIn("east", namespace, "first");
  await eventuallyPasses(async () => expect((await clients().east.list(pods)).items).toHaveLength(3), PATIENT);
  const { items } = await clients().east.list(nodes);
  const cores = String(items.reduce((sum, { status }) => sum + Number(status?.allocatable?.cpu), 0));
  const east = async (): Promise<string | undefined> =>
    quotasOf(await clients().host.get(queuesV1beta2, { name: "followed-sets" })).east?.cpu;
  // Others' pods are read once the queue asks for the members' figures.
  const body = { metadata: { annotations: { [QUOTA_ANNOTATION]: "follow" } } };
  await clients().host.patch(queuesV1beta2, { name: "followed-sets" }, { type: "merge", body });
  await eventuallyPasses(async () => expect(await east()).toBe(cores), PATIENT);
  const cordon = async (unschedulable: boolean): Promise<void> => {
    const name = virtualNodeName("east");
    await clients().host.patch(nodes, { name }, { type: "merge", body: { spec: { unschedulable } } });
  };
  await cordon(true);
  onTestFinished(() => cordon(false));
  await eventuallyPasses(async () => expect(await east()).toBe("3"), PATIENT);
});

test("the check for room is answered for all pods of a whole JobSet together", async () => {
  const check = { apiVersion: "kueue.x-k8s.io/v1beta2", kind: "AdmissionCheck", metadata: { name: "room" } };
  await applyAll(host, [{ ...check, spec: { controllerName: "legation.dev/room" } }]);
  onTestFinished(async () => void (await kubectl(host, ["delete", "admissionchecks.kueue.x-k8s.io", "room"])));
  const spec = { admissionChecksStrategy: { admissionChecks: [{ name: "room" }] } };
  const namespace = await queueOf("roomy-sets", { east: "100k" }, spec);
  const perMember = (await clients().east.list(nodes)).items.length;
  await submit(namespace, "small", "roomy-sets", { whole: true });
  await runsIn("east", namespace, "small");
  const { status } = await workloadOf(clients().host, namespace, "small");
  expect(status?.admissionChecks).toMatchObject([{ state: "Ready", message: "3 pods fit: 3 in east" }]);
  // Each finds a node, and all of them do not.
  await submit(namespace, "large", "roomy-sets", { whole: true, cpu: "60", pods: perMember });
  await eventuallyPasses(async () => {
    const { status: found } = await workloadOf(clients().host, namespace, "large");
    const message = expect.stringMatching(/pods of pod set worker would wait: east: cpu: 60 requested/);
    expect(found?.admissionChecks).toMatchObject([{ state: "Retry", message }]);
  }, PATIENT);
});
