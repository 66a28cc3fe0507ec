import { onTestFinished } from "vitest";
import { DELEGATE_ANNOTATION, WHOLE_KEY } from "../../../src/api/keys.ts";
import type { Job, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { QUEUE_NAME_LABEL } from "../../../src/api/kueue.ts";
import type { Workload } from "../../../src/api/kueue-workload.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { jobs } from "../../../src/kube/resources.ts";
import { stays, template } from "../builders/workload.ts";
import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { freshNamespace } from "../harness/namespace.ts";
import { podsOf } from "../harness/pods-of.ts";
import { clusterQueue, localQueue } from "./kueue-objects.ts";
import { workloadsV1beta2 } from "./kueue-scheduler.ts";

type JobSpec = NonNullable<Job["spec"]>;

/** Names of WorkloadPriorityClasses, with their values. */
const PRIORITIES = { low: 10, high: 1000 };

/** The classes `low` and `high`. */
export const PRIORITY_CLASSES: readonly object[] = Object.entries(PRIORITIES).map(([name, value]) => ({
  apiVersion: "kueue.x-k8s.io/v1beta2",
  kind: "WorkloadPriorityClass",
  metadata: { name },
  value,
}));

/** Makes a ClusterQueue until the test ends, and a namespace with its LocalQueue. The first of the clusters is the host. */
export async function queueOf(
  clusters: readonly [host: Cluster, ...members: Cluster[]],
  name: string,
  ...[quotas, options]: [Parameters<typeof clusterQueue>[1], Parameters<typeof clusterQueue>[2]?]
): Promise<string> {
  const [host] = clusters;
  const namespace = await freshNamespace(clusters, {
    prefix: name,
    labels: { "legation.dev/delegation": "annotated" },
  });
  await applyAll(host, [clusterQueue(name, quotas, options), localQueue(namespace, name)]);
  onTestFinished(async () => {
    await kubectl(host, ["delete", "jobs,deployments", "--all", "-n", namespace]);
    await kubectl(host, ["delete", "pods", "--all", "--ignore-not-found", "--wait=false", "-n", namespace]);
    // Kueue keeps deleted pods of a group, which could still be replaced.
    await kubectl(host, ["delete", "workloads.kueue.x-k8s.io", "--all", "-n", namespace]);
    // A queue goes once it has no workloads, and has its share until then.
    await kubectl(host, ["delete", "clusterqueues.kueue.x-k8s.io", name, "--timeout=60s"]);
  });
  return namespace;
}

/** Makes an AdmissionCheck until the test ends, which Kueue takes for active. Workloads wait for the test to answer. */
export async function heldCheck(host: Cluster, name: string): Promise<void> {
  const check = { apiVersion: "kueue.x-k8s.io/v1beta2", kind: "AdmissionCheck", metadata: { name } };
  await applyAll(host, [{ ...check, spec: { controllerName: "example.com/held" } }]);
  onTestFinished(async () => void (await kubectl(host, ["delete", "admissionchecks.kueue.x-k8s.io", name])));
  const active = { type: "Active", status: "True", reason: "Active", message: "answers" };
  await patchStatus(host, ["admissionchecks.kueue.x-k8s.io", name], {
    conditions: [{ ...active, lastTransitionTime: new Date().toISOString() }],
  });
}

/** Merges into the status of an object, given as kubectl names it. */
export async function patchStatus(host: Cluster, object: readonly string[], status: object): Promise<void> {
  const patch = JSON.stringify({ status });
  await kubectl(host, ["patch", ...object, "--subresource=status", "--type=merge", "-p", patch]);
}

export interface Submitted {
  readonly cpu?: string;
  readonly pods?: number;
  readonly whole?: boolean;
  readonly priority?: keyof typeof PRIORITIES;
  /** Annotations of its pods. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Annotations of the Job itself. */
  readonly onJob?: Readonly<Record<string, string>>;
  /** Further fields of the Job. */
  readonly spec?: Partial<JobSpec>;
  /** Further fields of its pods. */
  readonly podSpec?: Partial<PodSpec>;
}

/** Creates a Job in a LocalQueue, whose pods run until it is deleted. Its pods, or itself whole, go to members. */
export function submit(
  client: ClusterClient,
  namespace: string,
  name: string,
  queue: string,
  options: Submitted = {},
): Promise<Stored<Job>> {
  const { cpu = "1", pods = 2, whole = false, annotations = {}, onJob = {}, spec = {}, podSpec = {} } = options;
  const main = { name: "main", image: "main:1", resources: { requests: { cpu } } };
  const delegate = whole ? {} : { [DELEGATE_ANNOTATION]: "true" };
  const made = template(
    { restartPolicy: "Never", containers: [main], ...podSpec },
    { ...delegate, ...stays("running"), ...annotations },
  );
  return client.create(jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      namespace,
      name,
      labels: labelsIn(queue, options),
      annotations: { ...(whole ? { [WHOLE_KEY]: "true" } : {}), ...onJob },
    },
    spec: {
      suspend: true,
      parallelism: pods,
      completions: pods,
      template: made as JobSpec["template"],
      ...spec,
    },
  });
}

/** Labels of an object in a LocalQueue. */
export function labelsIn(queue: string, { priority }: Pick<Submitted, "priority"> = {}): Record<string, string> {
  return {
    [QUEUE_NAME_LABEL]: queue,
    ...(priority === undefined ? {} : { "kueue.x-k8s.io/priority-class": priority }),
  };
}

/** Reports whether a pod is the Job's. */
export function isOfJob(job: string): (pod: Pod) => boolean {
  return ({ metadata }) => metadata?.labels?.["batch.kubernetes.io/job-name"] === job;
}

/** Returns where the Job's pods, or all of the namespace, are on the host, and their phases. */
export async function placesOf(client: ClusterClient, namespace: string, job?: string): Promise<string[]> {
  const all = await podsOf(client, namespace);
  return all.filter(job === undefined ? () => true : isOfJob(job)).map(placeOf);
}

function placeOf({ spec, status }: Pod): string {
  return `${spec?.nodeName} ${status?.phase}`;
}

/** Returns the Workload that Kueue has made of an object, the newest of several. */
export async function workloadOf(client: ClusterClient, namespace: string, owner: string): Promise<Stored<Workload>> {
  const { items } = await client.list(workloadsV1beta2, { namespace });
  const own = items.filter(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === owner));
  const at = ({ metadata }: Stored<Workload>): string => metadata.creationTimestamp ?? "";
  const [newest] = own.sort((one, other) => (at(one) < at(other) ? 1 : -1));
  if (newest === undefined) throw new Error(`Kueue has made no Workload of ${owner}`);
  return newest;
}
