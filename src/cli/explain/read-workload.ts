import { z } from "zod";
import { delegationModeOf } from "../../api/delegation-mode.ts";
import type { Job, KubeEvent, Pod, Stored } from "../../api/kubernetes.ts";
import { isWishingKind } from "../../api/workload-wishes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { events, jobs, namespaces, pods as podResource } from "../../kube/resources.ts";
import { isDeleting } from "../../pods/pod-state.ts";
import { type FindWorkload, workloadKey } from "../../scheduling/workload.ts";
import { admitPod, isDelegated } from "../../simulation/admission.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { isMarkedWhole } from "../../whole/jobs/kind.ts";
import { JOBS } from "../../whole/jobs/type.ts";
import { withoutShape } from "../shared/delegated-types.ts";
import { objectOf, readFields, type WrittenObject } from "../shared/documents.ts";
import { hiddenLine, MEMBERS } from "../shared/hidden.ts";
import { notOnHost, readable } from "../shared/reading.ts";
import {
  claimsOf,
  isMakerOf,
  isPodOf,
  makerOf,
  missingOrdinal,
  type NamedWorkload,
  podOf,
} from "../simulation/controller-pods.ts";
import { among, readClaims, readHost, readWorkloadObject } from "../simulation/host-state.ts";
import { podsOf, type WorkloadKind, type WorkloadPods } from "../simulation/workloads.ts";
import { lastTimeOf } from "./events.ts";
import { ownWorkloadOf } from "./not-delegated.ts";
import { readObjectOf, type WholeObjectStatus } from "./whole-object.ts";
import { type WorkloadFacts, type WorkloadStatus, workloadStatus } from "./workload.ts";

/** Reads a workload, its division and its pods. Rejects with `Failure` when the host has no such workload, else with KubeError. */
export async function readWorkload(
  client: ClusterClient,
  workload: NamedWorkload,
  signal: AbortSignal,
): Promise<WorkloadStatus | WholeObjectStatus> {
  const { namespace, kind } = workload;
  const object = await readWorkloadObject(client, workload, signal);
  if (object === undefined) throw notOnHost(`${kind} ${namespace}/${workload.name}`);
  if (kind === "Job" && isMarkedWhole(object.metadata.labels)) {
    const type = { resource: withoutShape(jobs), type: undefined, builtIn: JOBS };
    return readObjectOf(type, client, workload, signal);
  }
  const spec = podsOf(object, kind);
  const [jobsThere, all, refusals, known, claims] = await Promise.all([
    kind === "CronJob" ? listAll(client, jobs, { namespace, signal }) : [],
    listAll(client, podResource, { namespace, signal }),
    listAll(client, events, { namespace, fieldSelector: "reason=FailedCreate", signal }),
    readable(readHost(client, [namespace], signal)),
    readClaims(client, [{ namespace, pods: spec }], signal),
  ]);
  // An account with rights in one namespace sees the workload's own pods.
  const seen = known?.host ?? { ...NO_HOST, namespaces: await ownNamespace(client, namespace, signal) };
  const host = { ...seen, claims, findWorkload: withOwnWishes(seen.findWorkload, object, workload) };
  const pods = all.filter((pod) => isPodOf(workload, pod));
  const active = kind === "CronJob" ? runsOf(object) : [];
  const runs = jobsThere
    .filter(({ metadata }) => active.includes(metadata.name))
    .map((job) => objectOf(job, `Job ${namespace}/${job.metadata.name}`));
  const facts = {
    ...ownWorkloadOf(object, kind),
    namespace,
    replicas: podsWanted(object, kind, runs),
    pods,
    refusals: refusals.filter((event) => isAtWork(workload, object, runs, event)),
    ended: spec.ended,
    jobs: jobsThere.filter((job) => isMadeBy(object, job)),
    hidden: hiddenLine(known?.hidden ?? [MEMBERS]),
    ...(known === undefined || spec.ended !== undefined ? {} : nextPod(workload, spec, pods, host)),
  };
  return workloadStatus(facts, host, Date.now());
}

const NO_HOST: HostState = { clusters: [], nodes: [], proxies: [], namespaces: [], defaults: [] };

async function ownNamespace(
  client: ClusterClient,
  name: string,
  signal: AbortSignal,
): Promise<HostState["namespaces"]> {
  const found = await readable(client.find(namespaces, { name }, { signal }));
  return found === undefined ? [] : [found];
}

/** Adds the workload's own wishes. Its next pod, which has no owner yet, is told apart by no uid. */
function withOwnWishes(
  others: HostState["findWorkload"],
  { metadata: { annotations = {} } }: WrittenObject,
  { kind, namespace, name }: NamedWorkload,
): FindWorkload {
  const own = isWishingKind(kind) ? [[workloadKey(namespace, { kind, name }), { annotations }] as const] : [];
  return among(new Map(own), others);
}

/** Reports whether the CronJob has made the Job, which may have ended. */
function isMadeBy({ metadata: { uid } }: WrittenObject, { metadata }: Stored<Job>): boolean {
  return metadata.ownerReferences?.some((owner) => owner.controller === true && owner.uid === uid) ?? false;
}

/** Reports whether an event concerns the current creator of pods, and not an earlier run of a CronJob. */
function isAtWork(
  workload: NamedWorkload,
  object: WrittenObject,
  runs: readonly WrittenObject[],
  event: KubeEvent,
): boolean {
  const { involvedObject: maker = {} } = event;
  if (workload.kind !== "CronJob") return isMakerOf(workload, maker);
  if (maker.kind === "Job") return runs.some(({ metadata }) => metadata.name === maker.name);
  // The CronJob's own event: the Job itself could not be created.
  return isMakerOf(workload, maker) && Date.parse(lastTimeOf(event)) > lastRunOf(object);
}

/** Returns the workload's next pod and its claims after admission. Undefined when it would not be delegated. */
function nextPod(
  workload: NamedWorkload,
  spec: WorkloadPods,
  pods: readonly Stored<Pod>[],
  { namespaces }: HostState,
): Pick<WorkloadFacts, "next" | "nextClaims"> {
  const namespace = namespaces.find(({ metadata }) => metadata.name === workload.namespace);
  const mode = delegationModeOf(namespace?.metadata.labels);
  if (mode === undefined) return {};
  // The ReplicaSet of the Deployment's current template.
  const maker = makerOf(pods.filter((pod) => !isDeleting(pod)));
  const index = workload.kind === "StatefulSet" ? missingOrdinal(pods, spec.firstOrdinal) : pods.length;
  const admitted = admitPod(podOf(workload, spec, index, maker), mode);
  if (admitted.denied !== undefined || !isDelegated(admitted.object)) return {};
  return { next: admitted.object, nextClaims: claimsOf(workload, spec, index) };
}

const cronJobStatus = z.looseObject({
  active: z.array(z.looseObject({ name: z.string() })).default([]),
  lastScheduleTime: z.string().default(""),
  lastSuccessfulTime: z.string().default(""),
});
const cronJobState = z.looseObject({ status: cronJobStatus.prefault({}) });

/** Returns how many pods a workload wants now. `runs` are a CronJob's active Jobs. */
export function podsWanted(object: WrittenObject, kind: WorkloadKind, runs: readonly WrittenObject[]): number {
  if (kind === "CronJob") return runs.reduce((wanted, run) => wanted + podsWanted(run, "Job", []), 0);
  const { replicas, suspended } = podsOf(object, kind);
  return suspended ? 0 : replicas;
}

/** Returns the names of a CronJob's active Jobs. */
export function runsOf(cronJob: WrittenObject): string[] {
  return readFields(cronJobState, cronJob).status.active.map(({ name }) => name);
}

/** Returns when a CronJob's latest run was due or succeeded, in epoch ms; 0 if it never ran. */
function lastRunOf(cronJob: WrittenObject): number {
  const { lastScheduleTime, lastSuccessfulTime } = readFields(cronJobState, cronJob).status;
  return Math.max(Date.parse(lastScheduleTime) || 0, Date.parse(lastSuccessfulTime) || 0);
}
