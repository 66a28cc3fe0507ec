import { PLACED_CONDITION, REFUSED_CONDITION } from "../api/keys.ts";
import type { Pod, PodCondition, PodStatus, Stored } from "../api/kubernetes.ts";
import { timestamp } from "../api/timestamp.ts";
import { shownStatuses } from "./container-statuses.ts";
import { jsonEqual } from "./equal.ts";
import { followedConditions } from "./followed-conditions.ts";
import { type ResizeRefusal, resizeNeeded, specFollows } from "./forward.ts";
import { conditionOf, isTerminal } from "./phase.ts";
import { isHostsGate, withdrawnGates } from "./readiness.ts";

/** Strategic merge patch of a proxy's status; what its metadata has is a precondition (409 when the pod has another). */
export interface StatusPatch {
  readonly metadata: { readonly uid: string; readonly resourceVersion?: string };
  readonly status: Record<string, unknown>;
}

// Fields that the host's own components write: the resource claim controller, the scheduler, and the API server, which
// reckons the quality of service from the spec and refuses any other. Another LimitRange in the member may make it differ.
const HOST_STATUS_FIELDS = new Set([
  "nominatedNodeName",
  "resourceClaimStatuses",
  "extendedResourceClaimStatus",
  "nodeAllocatableResourceClaimStatuses",
  "qosClass",
]);

// Conditions that the kubelet takes away again when they no longer hold, or that Legation writes before the kubelet does.
const RESIZE_PENDING = "PodResizePending";
const KUBELET_TEMPORARY_CONDITIONS = [RESIZE_PENDING, "PodResizeInProgress", "PodReadyToStartContainers"];

// Lists with patchStrategy=merge in the API types: without this directive old entries would stay.
const MERGED_LISTS = new Set(["podIPs", "hostIPs"]);

/**
 * The status a proxy must show for what its delegate's status says; undefined when the proxy's may not change any more.
 * Verbatim but for what belongs to the host. A phase never goes backwards: the API server and every controller rely on
 * a terminal pod staying so. Under a final phase the rest may still change, as a kubelet tells of a sandbox that it has taken
 * down. A kubelet that runs the init containers again, in a new sandbox, calls a pod Pending that ran before: all else that
 * it says holds. `gone`: the delegate is not there any more, and this is the last of it. `refused`: what its member has said of the
 * resize that the delegate has still to get.
 */
export function statusFrom(
  proxy: Pod,
  delegate: Stored<Pod>,
  { gone = false, refused }: { readonly gone?: boolean; readonly refused?: ResizeRefusal | undefined } = {},
): PodStatus | undefined {
  const status = delegate.status ?? {};
  if (isTerminal(proxy) && status.phase !== proxy.status?.phase) return undefined;
  const ran = proxy.status?.phase === "Running" && (status.phase === "Pending" || status.phase === undefined);
  // Said of a pod that nobody has looked at since it was made: not of one that runs.
  if (ran && status.containerStatuses === undefined) return undefined;
  const wanted: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(status)) if (!HOST_STATUS_FIELDS.has(field)) wanted[field] = value;

  const { spec } = proxy;
  const statuses = {
    containerStatuses: shownStatuses(status.containerStatuses, spec?.containers),
    initContainerStatuses: shownStatuses(status.initContainerStatuses, spec?.initContainers),
    ephemeralContainerStatuses: shownStatuses(status.ephemeralContainerStatuses, spec?.ephemeralContainers),
  };
  for (const [field, shown] of Object.entries(statuses)) {
    if (shown === undefined) delete wanted[field];
    else wanted[field] = shown;
  }
  // Who waits for a pod to run looks at its containers next: they are never told later.
  if (status.phase === "Running" && wanted.containerStatuses === undefined)
    wanted.phase = proxy.status?.phase ?? "Pending";
  if (ran) wanted.phase = "Running";
  const generationOf = hostGenerations(proxy, delegate, refused);
  const conditions = conditionsFrom(proxy, delegate, { generationOf, gone });
  wanted.conditions = refused === undefined ? conditions : withRefused(proxy, conditions, refused);
  setGeneration(wanted, generationOf(status.observedGeneration) ?? proxy.status?.observedGeneration);
  if (isTerminal(proxy)) Object.assign(wanted, { reason: proxy.status?.reason, message: proxy.status?.message });
  return wanted as PodStatus;
}

/**
 * The status that a proxy is to have, but not Ready: nobody may count on it. So the node lifecycle controller marks the pods of a
 * node that is not heard of.
 */
export function notReady(proxy: Pod, wanted: PodStatus, now: number): PodStatus {
  const lastTransitionTime = timestamp(now);
  const shown = conditionOf(proxy, "Ready");
  const conditions = (wanted.conditions ?? []).map((condition) => {
    if (condition.type !== "Ready" || condition.status !== "True") return condition;
    return shown?.status === "False" ? shown : { ...condition, status: "False", lastTransitionTime };
  });
  return { ...wanted, conditions };
}

/** The patch that turns the proxy's status into `wanted`; undefined when they are equal, so that nothing is written. */
export function statusPatch(proxy: Stored<Pod>, wanted: PodStatus): StatusPatch | undefined {
  const current: Record<string, unknown> = { ...proxy.status };
  const next: Record<string, unknown> = { ...wanted };
  const status: Record<string, unknown> = {};
  for (const field of new Set([...Object.keys(current), ...Object.keys(next)])) {
    if (field === "conditions" || HOST_STATUS_FIELDS.has(field)) continue;
    if (jsonEqual(current[field], next[field])) continue;
    const value = next[field] ?? null;
    status[field] = MERGED_LISTS.has(field) && Array.isArray(value) ? [...value, { $patch: "replace" }] : value;
  }
  const conditions = conditionsPatch(proxy.status?.conditions ?? [], wanted.conditions ?? []);
  if (conditions.length > 0) status.conditions = conditions;
  if (Object.keys(status).length === 0) return undefined;
  return { metadata: { uid: proxy.metadata.uid }, status };
}

function conditionsFrom(
  proxy: Pod,
  delegate: Stored<Pod>,
  { generationOf, gone }: { readonly generationOf: HostGeneration; readonly gone: boolean },
): PodCondition[] {
  const result = new Map((proxy.status?.conditions ?? []).map((condition) => [condition.type, condition]));
  const told = delegate.status?.conditions ?? [];
  const followed = followedConditions(proxy, delegate, gone);
  for (const type of [...withdrawnGates(proxy, delegate), ...followed.withdrawn]) result.delete(type);
  // By type, since a member may tell one many times.
  for (const [type, condition] of new Map(told.map((condition) => [condition.type, condition]))) {
    if (isHostsGate(proxy, delegate, type) || followed.isHosts(type) || type === REFUSED_CONDITION) continue;
    // What is over in the member may still hold on the host, whose own eviction has said so.
    if (condition.type === "DisruptionTarget" && condition.status !== "True") continue;
    if (!gone && isUnfinishedDisruption(delegate, condition)) continue;
    const ours = result.get(condition.type);
    // The host's binding has said when the proxy was scheduled, and kubelets only say that they have seen it.
    const said = condition.type === "PodScheduled" ? ours : condition;
    if (said === undefined) continue;
    const shown: PodCondition = { ...said };
    // A gate's opener on the host writes it, and it is not forwarded. API servers write `null` for none.
    const probedAt = said.lastProbeTime ?? ours?.lastProbeTime;
    if (probedAt !== undefined && probedAt !== said.lastProbeTime) shown.lastProbeTime = probedAt;
    setGeneration(shown, generationOf(condition.observedGeneration) ?? ours?.observedGeneration);
    result.set(condition.type, shown);
  }
  for (const type of KUBELET_TEMPORARY_CONDITIONS) {
    if (!result.has(type) || told.some((condition) => condition.type === type)) continue;
    // What was said of a resize that has still to reach the delegate holds until its member is asked again.
    if (type === RESIZE_PENDING && !isTerminal(delegate) && resizeNeeded(proxy, delegate) !== undefined) continue;
    result.delete(type);
  }
  if (result.get(PLACED_CONDITION)?.status === "False") result.delete(PLACED_CONDITION);
  return [...result.values()];
}

/** As a kubelet that has seen the resize and cannot do it: of the proxy's newest generation. */
function withRefused(
  proxy: Pod,
  conditions: readonly PodCondition[],
  { reason, message, since }: ResizeRefusal,
): PodCondition[] {
  const { lastTransitionTime = since } = conditionOf(proxy, RESIZE_PENDING) ?? {};
  const pending: PodCondition = { type: RESIZE_PENDING, status: "True", reason, message, lastTransitionTime };
  setGeneration(pending, proxy.metadata?.generation);
  return [...conditions.filter(({ type }) => type !== RESIZE_PENDING), pending];
}

/**
 * Why a pod ends is told with its end, unless its kubelet is ending it. Of a pod that is neither deleted nor ended, the host's
 * disruption controller takes the condition back two minutes later, again and again; and of one that is deleted it is one write more.
 */
function isUnfinishedDisruption(delegate: Pod, { type, status, reason }: PodCondition): boolean {
  if (type !== "DisruptionTarget" || status !== "True" || reason === "TerminationByKubelet") return false;
  return !isTerminal(delegate);
}

/** The generation of the proxy that is meant by one of the delegate; undefined when none is known. */
type HostGeneration = (observed: number | undefined) => number | undefined;

/** A generation counts one object's changes: only "this is the newest, and nothing is on its way" can be said of both. */
function hostGenerations(proxy: Pod, delegate: Stored<Pod>, refused: ResizeRefusal | undefined): HostGeneration {
  const current = specFollows(proxy, delegate, refused) ? proxy.metadata?.generation : undefined;
  return (observed) => (observed !== undefined && observed === delegate.metadata.generation ? current : undefined);
}

/** The API server keeps a generation that is taken away, so nobody may try. */
function setGeneration(object: { observedGeneration?: number }, generation: number | undefined): void {
  if (generation === undefined) delete object.observedGeneration;
  else object.observedGeneration = generation;
}

function conditionsPatch(current: readonly PodCondition[], wanted: readonly PodCondition[]): object[] {
  const patches: object[] = [];
  const old = new Map(current.map((condition) => [condition.type, condition]));
  for (const condition of wanted) {
    const before = old.get(condition.type);
    old.delete(condition.type);
    if (jsonEqual(before, condition)) continue;
    const removed = Object.keys(before ?? {}).filter((field) => !(field in condition));
    patches.push({ ...condition, ...Object.fromEntries(removed.map((field) => [field, null])) });
  }
  for (const type of old.keys()) patches.push({ type, $patch: "delete" });
  return patches;
}
