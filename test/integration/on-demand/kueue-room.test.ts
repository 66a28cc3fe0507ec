import { beforeAll, expect, onTestFinished, test } from "vitest";
import { clusterOfNode } from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { isTrue, type Workload } from "../../../src/api/kueue-workload.ts";
import { events, nodes } from "../../../src/kube/resources.ts";
import { type KueueManager, startKueue } from "../../support/engines/kueue-manager.ts";
import { clusterQueue, flavor, localQueue } from "../../support/engines/kueue-objects.ts";
import { isOfJob, workloadOf as ownWorkload, submit as submitJob } from "../../support/engines/kueue-queues.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { podsOf } from "../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";

const host = hostCluster();
const QUEUE = "room";
// Kueue queues a workload again after 10 s, then 20.
const PATIENT = { timeoutMs: 90_000, intervalMs: 300 };
let kueue: KueueManager;

// The controller looks for the API when it starts, and once a minute.
beforeAll(async () => {
  kueue = await startKueue(host, { frameworks: ["batch/job"] });
  afterFile(() => kueue.stop());
  const check = {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "AdmissionCheck",
    metadata: { name: QUEUE, annotations: { "legation.dev/place-within": "5s" } },
    spec: { controllerName: "legation.dev/room" },
  };
  const spec = { admissionChecksStrategy: { admissionChecks: [{ name: QUEUE }] } };
  await applyAll(host, [flavor("all", {}), check, clusterQueue(QUEUE, { all: { cpu: "100k" } }, { spec })]);
}, 900_000);
useLegation();
const clients = useClients();

async function queueIn(): Promise<string> {
  const labels = { "legation.dev/delegation": "all" };
  const namespace = await freshNamespace([host, memberCluster("west"), memberCluster("east")], {
    prefix: "room",
    labels,
  });
  await applyAll(host, [localQueue(namespace, QUEUE)]);
  onTestFinished(async () => void (await kubectl(host, ["delete", "jobs", "--all", "-n", namespace])));
  return namespace;
}

function submit(namespace: string, name: string, parallelism: number, cpu: string): Promise<unknown> {
  return submitJob(clients().host, namespace, name, QUEUE, { pods: parallelism, cpu });
}

function workloadOf(namespace: string, job: string): Promise<Stored<Workload>> {
  return ownWorkload(clients().host, namespace, job);
}

async function running(namespace: string, job: string): Promise<Stored<Pod>[]> {
  const own = (await podsOf(clients().host, namespace)).filter(isOfJob(job));
  return own.filter(({ spec, status }) => status?.phase === "Running" && clusterOfNode(spec?.nodeName) !== undefined);
}

async function nodesPerMember(): Promise<number> {
  return (await clients().west.list(nodes)).items.length;
}

test("Kueue admits a Job once Legation tells of room, and its pods run in members", async () => {
  const namespace = await queueIn();
  await submit(namespace, "small", 3, "1");
  await eventuallyPasses(async () => expect(await running(namespace, "small")).toHaveLength(3), PATIENT);
  const { status } = await workloadOf(namespace, "small");
  expect(status?.admissionChecks).toMatchObject([{ state: "Ready", message: expect.stringContaining("3 pods fit") }]);
});

test("a Job without room is told the reason, evicted and queued again, and admitted when room is free", async () => {
  const namespace = await queueIn();
  const perMember = await nodesPerMember();
  await submit(namespace, "first", 2 * perMember, "40");
  await eventuallyPasses(async () => expect(await running(namespace, "first")).toHaveLength(2 * perMember), PATIENT);
  await submit(namespace, "second", 2 * perMember, "40");
  await eventuallyPasses(async () => {
    const { status } = await workloadOf(namespace, "second");
    const message = expect.stringMatching(/pods would wait: east: cpu: 40 requested, .* west: cpu: 40 requested/);
    expect(status?.admissionChecks).toMatchObject([{ state: "Retry", message, requeueAfterSeconds: 10 }]);
  }, PATIENT);
  // Kueue keeps the quota until that time is over, and asks for room again at once.
  await eventuallyPasses(async () => {
    const { items } = await clients().host.list(events, { namespace });
    expect(items.map(({ reason }) => reason)).toContain("EvictedDueToAdmissionCheck");
    const { status } = await workloadOf(namespace, "second");
    expect(status?.admissionChecks).toMatchObject([{ state: "Retry", requeueAfterSeconds: 20 }]);
  }, PATIENT);
  await kubectl(host, ["delete", "job", "first", "-n", namespace]);
  await eventuallyPasses(async () => expect(await running(namespace, "second")).toHaveLength(2 * perMember), PATIENT);
});

test("a Job that no member could ever run is deactivated", async () => {
  const namespace = await queueIn();
  await submit(namespace, "huge", 1, "4k");
  await eventuallyPasses(async () => {
    expect((await workloadOf(namespace, "huge")).spec?.active).toBe(false);
  }, PATIENT);
});

test("a Job whose pods find no place in their time is evicted, and queued again", async () => {
  const namespace = await queueIn();
  const perMember = await nodesPerMember();
  // Two on one node do not fit, though the sum of the nodes has room for more.
  const fitting = Math.floor((64 * perMember) / 33);
  expect(fitting).toBeGreaterThan(perMember);
  await submit(namespace, "late", 2 * fitting, "33");
  const evicted = await eventually(async () => {
    const found = await workloadOf(namespace, "late");
    return isTrue(found, "Evicted") && found;
  }, PATIENT);
  expect(evicted.status?.conditions).toContainEqual(
    expect.objectContaining({
      type: "Evicted",
      reason: "AdmissionCheck",
      message: expect.stringMatching(/found no place within 5s of the admission/),
    }),
  );
  await eventuallyPasses(async () => {
    const { status } = await workloadOf(namespace, "late");
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: "Requeued", status: "True" }));
  }, PATIENT);
});
