import type { ContainerStatus, OwnerReference, Pod, PodCondition } from "../api/kubernetes.ts";

// The collector writes the condition and deletes the pod; when that fails, it tries again each 20 s. Clocks differ, too.
const COLLECTED_WITHIN_MS = 5 * 60_000;

/** True when no container of the pod will run again: phase Succeeded or Failed. */
export function isTerminal(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase === "Succeeded" || phase === "Failed";
}

/** True when deletion was requested; the object stays until its grace period and finalizers are done. */
export function isDeleting(pod: Pod): boolean {
  return pod.metadata?.deletionTimestamp !== undefined;
}

/**
 * The grace period in seconds that the deletion was asked for with; undefined before that. The API takes numbers that JavaScript
 * keeps as they were written, which do not compare: those become the largest that does.
 */
export function deletionGrace({ metadata }: Pod): number | undefined {
  const seconds: unknown = metadata?.deletionGracePeriodSeconds;
  if (seconds === undefined || typeof seconds === "number") return seconds;
  return Math.min(Number(JSON.stringify(seconds)), Number.MAX_SAFE_INTEGER);
}

/** When the deletion was asked for, whose timestamp is the end of its grace period; undefined before that, or when no date says it. Epoch ms. */
export function deletionAskedAt(pod: Pod): number | undefined {
  const endsAt = Date.parse(pod.metadata?.deletionTimestamp ?? "");
  const askedAt = new Date(endsAt - (deletionGrace(pod) ?? 0) * 1000).getTime();
  return Number.isNaN(askedAt) ? undefined : askedAt;
}

/**
 * The grace period in seconds that somebody asked for, who knows that the pod ends: its own counts, as a kubelet gives it, where that was
 * the pod garbage collector. Undefined then, and before any deletion.
 */
export function askedGrace(pod: Pod): number | undefined {
  return isCollected(pod) ? undefined : deletionGrace(pod);
}

/**
 * True when this cluster's pod garbage collector has deleted the pod, by force, since its node was not there. A virtual node that was deleted while
 * nobody led is made again, and its member was there all the time: nobody has said that nothing runs in it. The collector of a member
 * writes the same condition, which the proxy shows, too: that comes before anybody here asks for the deletion.
 */
function isCollected(pod: Pod): boolean {
  const { status, reason, lastTransitionTime } = conditionOf(pod, "DisruptionTarget") ?? {};
  const askedAt = deletionAskedAt(pod);
  if (status !== "True" || reason !== "DeletionByPodGC" || askedAt === undefined) return false;
  return Date.parse(lastTransitionTime ?? "") > askedAt - COLLECTED_WITHIN_MS;
}

/** True for a pod that runs or is to run: it has neither ended, nor is it being deleted. */
export function isLive(pod: Pod): boolean {
  return !isTerminal(pod) && !isDeleting(pod);
}

/** True when a scheduler has given the pod a node. */
export function isBound(pod: Pod): boolean {
  return (pod.spec?.nodeName ?? "") !== "";
}

/** True while some scheduling gate holds the pod back (Kueue and others put them there). */
export function isGated(pod: Pod): boolean {
  return (pod.spec?.schedulingGates?.length ?? 0) > 0;
}

/** The pod's condition of that type. */
export function conditionOf(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

/** The scheduler's words when it has found no node for the pod; undefined when it has not said so. */
export function unschedulableMessage(pod: Pod): string | undefined {
  const scheduled = conditionOf(pod, "PodScheduled");
  if (scheduled?.status !== "False" || scheduled.reason !== "Unschedulable") return undefined;
  return scheduled.message ?? "no node fits";
}

/** Why a scheduler may have said nothing of the pod for so long, as far as the pod tells. */
export function silentSchedulerMessage(pod: Pod, seconds: number): string {
  const gates = (pod.spec?.schedulingGates ?? []).map(({ name }) => name);
  if (gates.length > 0) return `it is held back there by scheduling gates: ${gates.join(", ")}`;
  const claims = pod.spec?.resourceClaims ?? [];
  const { schedulerName = "default-scheduler" } = pod.spec ?? {};
  const hint = claims.length > 0 ? "; ResourceClaims and their templates are not copied: are they there?" : "";
  return `its scheduler (${schedulerName}) has not answered within ${seconds} s${hint}`;
}

/** The owner that manages the pod and would replace it. */
export function controllerOf(pod: Pod): OwnerReference | undefined {
  return pod.metadata?.ownerReferences?.find((owner) => owner.controller === true);
}

// Others (a workflow, a driver) may take the loss of the object for more than the loss of a pod.
const REPLACING: ReadonlySet<string> = new Set([
  "apps/v1 ReplicaSet",
  "apps/v1 StatefulSet",
  "batch/v1 Job",
  "v1 ReplicationController",
]);

/** Its controller makes another pod as soon as this one is being deleted, or gone: as on a node that is being drained. */
export function isReplaced(pod: Pod): boolean {
  const owner = controllerOf(pod);
  return owner !== undefined && REPLACING.has(`${owner.apiVersion} ${owner.kind}`);
}

/** All container statuses, in the order init, regular, ephemeral. */
function allStatuses(pod: Pod): ContainerStatus[] {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = pod.status ?? {};
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses];
}

/** True when some container of the pod was seen to run or to have run: it must not be run a second time. */
export function hasStarted(pod: Pod): boolean {
  return allStatuses(pod).some(
    ({ state, lastState, restartCount }) =>
      state?.running !== undefined ||
      state?.terminated !== undefined ||
      lastState?.terminated !== undefined ||
      restartCount > 0,
  );
}
