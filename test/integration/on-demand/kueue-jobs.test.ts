import { beforeAll, describe, expect, test } from "vitest";
import { DELEGATE_ANNOTATION, virtualNodeName } from "../../../src/api/keys.ts";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { isTrue } from "../../../src/api/kueue-workload.ts";
import { jobs, pods } from "../../../src/kube/resources.ts";
import { ends, stays } from "../../support/builders/workload.ts";
import { delegatedPod } from "../../support/delegated/pods.ts";
import { type KueueManager, startKueue } from "../../support/engines/kueue-manager.ts";
import { flavor, queuesV1beta2 } from "../../support/engines/kueue-objects.ts";
import {
  labelsIn,
  queueOf as makeQueue,
  PRIORITY_CLASSES,
  placesOf,
  type Submitted,
  submit,
  workloadOf,
} from "../../support/engines/kueue-queues.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { useClients } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { inPhase, podsOf, podThat } from "../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";

const host = hostCluster();
const PATIENT = { timeoutMs: 90_000, intervalMs: 300 };
const IN_WEST = `${virtualNodeName("west")} Running`;
const ELASTIC = { "kueue.x-k8s.io/elastic-job": "true" };
let kueue: KueueManager;

beforeAll(async () => {
  kueue = await startKueue(host, { frameworks: ["batch/job", "pod"] });
  afterFile(() => kueue.stop());
  await applyAll(host, [flavor("west", { "legation.dev/cluster": "west" }), ...PRIORITY_CLASSES]);
}, 900_000);
useLegation();
const clients = useClients();

/** Makes a queue with that many cores of west. */
function queueOf(name: string, cpu: string, spec: object = {}): Promise<string> {
  return makeQueue([host, memberCluster("west"), memberCluster("east")], name, { west: { cpu } }, { spec });
}

/** Waits until so many of the namespace's pods run in west, and none beside them; the host has none of whole Jobs. */
async function runsInWest(namespace: string, count: number, whole: boolean): Promise<void> {
  await eventuallyPasses(async () => {
    const there = await podsOf(clients().west, namespace);
    expect(
      there.map(({ status }) => status?.phase),
      kueue.output().slice(-2000),
    ).toEqual(new Array(count).fill("Running"));
    const here = await placesOf(clients().host, namespace);
    expect(here).toEqual(whole ? [] : new Array(count).fill(IN_WEST));
  }, PATIENT);
}

/** Waits until admitted workloads hold so many cores of the queue's flavor, as Kueue counts. */
async function holds(queue: string, cores: number): Promise<void> {
  await eventuallyPasses(async () => {
    const { status } = await clients().host.get(queuesV1beta2, { name: queue });
    expect(status?.flavorsReservation).toMatchObject([{ resources: [{ total: String(cores) }] }]);
  }, PATIENT);
}

describe.each([
  ["a whole Job", true],
  ["a Job with delegated pods", false],
])("%s", (_, whole) => {
  const suffix = whole ? "whole" : "plain";
  const options = (parts: Submitted): Submitted => ({ whole, ...parts });

  test("is admitted with fewer pods where it allows that, and with no more there", async () => {
    const queue = `partial-${suffix}`;
    const namespace = await queueOf(queue, "3");
    const onJob = { "kueue.x-k8s.io/job-min-parallelism": "2" };
    await submit(clients().host, namespace, "part", queue, options({ pods: 5, onJob }));
    await runsInWest(namespace, 3, whole);
    expect((await clients().host.get(jobs, { namespace, name: "part" })).spec?.parallelism).toBe(3);
    await holds(queue, 3);
  });

  test("is admitted anew when its parallelism changes, and waits as a whole beyond the quota", async () => {
    const queue = `resized-${suffix}`;
    const namespace = await queueOf(queue, "4");
    const resize = (parallelism: number): Promise<unknown> =>
      clients().host.patch(jobs, { namespace, name: "main" }, { type: "merge", body: { spec: { parallelism } } });
    await submit(clients().host, namespace, "main", queue, options({ pods: 2, spec: { completions: 8 } }));
    await runsInWest(namespace, 2, whole);
    await resize(4);
    await runsInWest(namespace, 4, whole);
    await holds(queue, 4);
    await resize(6);
    await runsInWest(namespace, 0, whole);
    await holds(queue, 0);
    await resize(3);
    await runsInWest(namespace, 3, whole);
    await holds(queue, 3);
  });
});

test("an elastic Job keeps its pods when it grows, and pods beyond the quota get no member", async () => {
  const namespace = await queueOf("elastic", "3");
  const resize = (parallelism: number): Promise<unknown> =>
    clients().host.patch(jobs, { namespace, name: "main" }, { type: "merge", body: { spec: { parallelism } } });
  await submit(clients().host, namespace, "main", "elastic", { pods: 2, spec: { completions: 8 }, onJob: ELASTIC });
  await runsInWest(namespace, 2, false);
  const before = (await podsOf(clients().host, namespace)).map(({ metadata }) => metadata.uid);
  await resize(3);
  await runsInWest(namespace, 3, false);
  const after = (await podsOf(clients().host, namespace)).map(({ metadata }) => metadata.uid);
  expect(after).toEqual(expect.arrayContaining(before));
  await resize(5);
  await eventuallyPasses(async () => {
    const found = (await placesOf(clients().host, namespace)).sort();
    expect(found).toEqual([IN_WEST, IN_WEST, IN_WEST, "undefined Pending", "undefined Pending"]);
  }, PATIENT);
  expect(await podsOf(clients().west, namespace)).toHaveLength(3);
  await holds("elastic", 3);
  await resize(1);
  await runsInWest(namespace, 1, false);
});

test("a whole Job that is elastic is refused with what to write", async () => {
  const namespace = await queueOf("elastic-whole", "3");
  const created = submit(clients().host, namespace, "main", "elastic-whole", { whole: true, onJob: ELASTIC });
  await expect(created).rejects.toThrow(/legation.dev\/whole.*kueue.x-k8s.io\/elastic-job.*remove/s);
});

/** A pod in the queue, as Airflow's executor and Argo make theirs: without a controller that Kueue knows. */
function queuedPod(namespace: string, name: string, queue: string, parts: Submitted & { group?: number } = {}): Pod {
  const { annotations = stays("running"), cpu = "1", group } = parts;
  const labels = group === undefined ? {} : { "kueue.x-k8s.io/pod-group-name": "group" };
  const counted = group === undefined ? {} : { "kueue.x-k8s.io/pod-group-total-count": String(group) };
  return delegatedPod(namespace, name, {
    labels: { ...labelsIn(queue, parts), ...labels },
    annotations: { [DELEGATE_ANNOTATION]: "true", ...annotations, ...counted },
    spec: {
      restartPolicy: "Never",
      containers: [{ name: "main", image: "work:1", resources: { requests: { cpu } } }],
    },
  });
}

test("pods without a group are admitted one by one, as those before them end", async () => {
  const namespace = await queueOf("steps", "2");
  const briefly = { ...ends(0), "kwok.test/ends-after": "3s" };
  for (const name of ["step-1", "step-2", "step-3"]) {
    await clients().host.create(pods, queuedPod(namespace, name, "steps", { annotations: briefly }));
  }
  await holds("steps", 2);
  expect((await placesOf(clients().host, namespace)).filter((place) => place === "undefined Pending")).toHaveLength(1);
  for (const name of ["step-1", "step-2", "step-3"]) {
    await podThat(clients().host, namespace, name, inPhase("Succeeded"), PATIENT);
  }
  await holds("steps", 0);
  await kubectl(host, ["delete", "pods", "--all", "-n", namespace, "--timeout=30s"]);
  expect(await podsOf(clients().west, namespace)).toEqual([]);
});

test("a pod that is preempted ends in its member, and its quota is another's once it is gone", async () => {
  const namespace = await queueOf("urgent", "2", { preemption: { withinClusterQueue: "LowerPriority" } });
  await clients().host.create(pods, queuedPod(namespace, "low", "urgent", { cpu: "2", priority: "low" }));
  await runsInWest(namespace, 1, false);
  await clients().host.create(pods, queuedPod(namespace, "high", "urgent", { cpu: "2", priority: "high" }));
  await podThat(clients().host, namespace, "high", inPhase("Running"), PATIENT);
  await eventuallyPasses(async () => {
    const names = (await podsOf(clients().west, namespace)).map(({ metadata }) => metadata.name);
    expect(names).toEqual(["high"]);
  }, PATIENT);
});

test("pods of a group wait for the last of them, and the group ends with them", async () => {
  const namespace = await queueOf("groups", "3");
  const briefly = { ...ends(0), "kwok.test/ends-after": "2s" };
  const create = (name: string): Promise<unknown> =>
    clients().host.create(pods, queuedPod(namespace, name, "groups", { annotations: briefly, group: 3 }));
  await create("one");
  await create("two");
  await podThat(clients().host, namespace, "two", ({ spec }) => (spec?.schedulingGates ?? []).length > 0, PATIENT);
  expect(await placesOf(clients().host, namespace)).toEqual(["undefined Pending", "undefined Pending"]);
  await create("three");
  for (const name of ["one", "two", "three"]) {
    await podThat(clients().host, namespace, name, inPhase("Succeeded"), PATIENT);
  }
  await eventuallyPasses(async () => {
    expect(isTrue(await workloadOf(clients().host, namespace, "one"), "Finished")).toBe(true);
  }, PATIENT);
  await holds("groups", 0);
});
