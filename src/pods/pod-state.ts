import type { ContainerStatus, KubeObject, OwnerReference, Pod, PodCondition } from "../api/kubernetes.ts";

// The collector retries a failed deletion every 20 s; clocks may differ.
const COLLECTED_WITHIN_MS = 5 * 60_000;

/** Reports whether the phase is Succeeded or Failed: no container will run again. */
export function isTerminal(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase === "Succeeded" || phase === "Failed";
}

export function isDeleting(object: KubeObject): boolean {
  return object.metadata?.deletionTimestamp !== undefined;
}

/** Returns the grace period of the deletion in seconds. */
export function deletionGrace({ metadata }: Pod): number | undefined {
  const seconds: unknown = metadata?.deletionGracePeriodSeconds;
  if (seconds === undefined || typeof seconds === "number") return seconds;
  return Math.min(Number(JSON.stringify(seconds)), Number.MAX_SAFE_INTEGER);
}

/** Returns when the deletion was requested, in epoch ms. The API server stores the end of the grace period instead. */
export function deletionAskedAt(pod: Pod): number | undefined {
  const endsAt = Date.parse(pod.metadata?.deletionTimestamp ?? "");
  const askedAt = new Date(endsAt - (deletionGrace(pod) ?? 0) * 1000).getTime();
  return Number.isNaN(askedAt) ? undefined : askedAt;
}

/** Returns the grace period the deleter requested. Undefined if the pod garbage collector force-deleted the pod. */
export function askedGrace(pod: Pod): number | undefined {
  return isCollected(pod) ? undefined : deletionGrace(pod);
}

/** Reports whether the host's pod garbage collector force-deleted the pod because its virtual node was missing. */
function isCollected(pod: Pod): boolean {
  const { status, reason, lastTransitionTime } = conditionOf(pod, "DisruptionTarget") ?? {};
  const askedAt = deletionAskedAt(pod);
  if (status !== "True" || reason !== "DeletionByPodGC" || askedAt === undefined) return false;
  return Date.parse(lastTransitionTime ?? "") > askedAt - COLLECTED_WITHIN_MS;
}

/** Reports whether the pod neither ended nor is being deleted. */
export function isLive(pod: Pod): boolean {
  return !isTerminal(pod) && !isDeleting(pod);
}

export function isBound(pod: Pod): boolean {
  return (pod.spec?.nodeName ?? "") !== "";
}

export function isGated(pod: Pod): boolean {
  return (pod.spec?.schedulingGates?.length ?? 0) > 0;
}

export function conditionOf(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

export function unschedulableMessage(pod: Pod): string | undefined {
  const scheduled = conditionOf(pod, "PodScheduled");
  if (scheduled?.status !== "False" || scheduled.reason !== "Unschedulable") return undefined;
  return scheduled.message ?? "no node fits";
}

export function silentSchedulerMessage(pod: Pod, seconds: number): string {
  const gates = (pod.spec?.schedulingGates ?? []).map(({ name }) => name);
  if (gates.length > 0) return `it is held back there by scheduling gates: ${gates.join(", ")}`;
  const claims = pod.spec?.resourceClaims ?? [];
  const { schedulerName = "default-scheduler" } = pod.spec ?? {};
  const hint =
    claims.length > 0
      ? "; ResourceClaims and their templates are copied only if an operator allows these types: are they there?"
      : "";
  const group = pod.spec?.schedulingGroup?.podGroupName;
  // The scheduler says nothing while it waits for a gang (PreEnqueue of KEP-4671).
  const ofGang = group === undefined ? "" : `; are PodGroup ${group} and as many pods as it asks for there?`;
  return `its scheduler (${schedulerName}) has not answered within ${seconds} s${hint}${ofGang}`;
}

export function controllerOf(pod: Pod): OwnerReference | undefined {
  return pod.metadata?.ownerReferences?.find((owner) => owner.controller === true);
}

// Workflow engines and drivers may take a lost pod for a failed task.
const REPLACING: ReadonlySet<string> = new Set([
  "apps/v1 ReplicaSet",
  "apps/v1 StatefulSet",
  "batch/v1 Job",
  "v1 ReplicationController",
]);

export function isReplaced(pod: Pod): boolean {
  const owner = controllerOf(pod);
  return owner !== undefined && REPLACING.has(`${owner.apiVersion} ${owner.kind}`);
}

export function allStatuses({ status }: Pod): ContainerStatus[] {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {};
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses];
}

/** Reports whether a container ran: the pod must not run a second time. */
export function everRan(pod: Pod): boolean {
  return allStatuses(pod).some(
    ({ state, lastState, restartCount }) =>
      state?.running !== undefined ||
      state?.terminated !== undefined ||
      lastState?.terminated !== undefined ||
      restartCount > 0,
  );
}
