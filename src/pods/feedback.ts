import { isJsonObject, jsonEqual } from "../api/json.ts";
import { ADDED_CONDITION, PLACED_CONDITION, REFUSED_CONDITION } from "../api/keys.ts";
import {
  type Container,
  type ContainerStatus,
  type Pod,
  type PodCondition,
  type PodSpec,
  type PodStatus,
  type Stored,
  timestamp,
} from "../api/kubernetes.ts";
import { addedCondition } from "./added-containers.ts";
import { followedConditions } from "./followed-conditions.ts";
import { type ResizeRefusal, resizeNeeded, specFollows } from "./forward.ts";
import { conditionOf, isTerminal } from "./pod-state.ts";
import { isHostsGate, withdrawnGates } from "./readiness-gates.ts";

/** A strategic merge patch of a proxy's status. Its metadata are preconditions: a pod that differs answers 409. */
export interface StatusPatch {
  readonly metadata: { readonly uid: string; readonly resourceVersion?: string };
  readonly status: Record<string, unknown>;
}

// Written by the host's resource claim controller, scheduler and API server, or by a LimitRange (QoS class).
const HOST_STATUS_FIELDS = new Set([
  "nominatedNodeName",
  "resourceClaimStatuses",
  "nodeAllocatableResourceClaimStatuses",
  "qosClass",
]);

// Conditions that the kubelet removes when they no longer hold, or that Legation writes before the kubelet does.
const RESIZE_PENDING = "PodResizePending";
const KUBELET_TEMPORARY_CONDITIONS = [RESIZE_PENDING, "PodResizeInProgress", "PodReadyToStartContainers"];

// Lists with patchStrategy=merge in the API types: without the directive, old entries would stay.
const MERGED_LISTS = new Set(["podIPs", "hostIPs"]);

/** Returns the status that the proxy must show. A phase never goes backwards. `gone`: the delegate was deleted. */
export function statusFrom(
  proxy: Pod,
  delegate: Stored<Pod>,
  { gone = false, refused }: { readonly gone?: boolean; readonly refused?: ResizeRefusal | undefined } = {},
): PodStatus | undefined {
  const status = delegate.status ?? {};
  if (isTerminal(proxy) && status.phase !== proxy.status?.phase) return undefined;
  const ran = proxy.status?.phase === "Running" && (status.phase === "Pending" || status.phase === undefined);
  // The member's kubelet has not reported this pod yet; the proxy keeps what it shows.
  if (ran && status.containerStatuses === undefined) return undefined;
  const wanted: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(status)) if (!HOST_STATUS_FIELDS.has(field)) wanted[field] = value;

  const { spec } = proxy;
  const statuses = {
    containerStatuses: shownStatuses(status.containerStatuses, spec?.containers),
    initContainerStatuses: shownStatuses(status.initContainerStatuses, spec?.initContainers),
    ephemeralContainerStatuses: shownStatuses(status.ephemeralContainerStatuses, spec?.ephemeralContainers),
  };
  const extendedResourceClaimStatus = withOwnRequests(status.extendedResourceClaimStatus, spec);
  for (const [field, shown] of Object.entries({ ...statuses, extendedResourceClaimStatus })) {
    if (shown === undefined) delete wanted[field];
    else wanted[field] = shown;
  }
  // Clients read container statuses once the phase is Running, so it waits for them.
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

/** Does as the node lifecycle controller with pods of an unreachable node. */
export function withoutReadiness(proxy: Pod, wanted: PodStatus, now: number): PodStatus {
  const lastTransitionTime = timestamp(now);
  const shown = conditionOf(proxy, "Ready");
  const conditions = (wanted.conditions ?? []).map((condition) => {
    if (condition.type !== "Ready" || condition.status !== "True") return condition;
    return shown?.status === "False" ? shown : { ...condition, status: "False", lastTransitionTime };
  });
  return { ...wanted, conditions };
}

/** Returns undefined when the proxy shows the status already. */
export function statusPatch(proxy: Stored<Pod>, wanted: PodStatus): StatusPatch | undefined {
  const current: Record<string, unknown> = { ...proxy.status };
  const next: Record<string, unknown> = { ...wanted };
  const status: Record<string, unknown> = {};
  for (const field of new Set([...Object.keys(current), ...Object.keys(next)])) {
    if (field === "conditions" || HOST_STATUS_FIELDS.has(field)) continue;
    if (jsonEqual(current[field], next[field])) continue;
    status[field] = replacement(field, next[field] ?? null, current[field]);
  }
  const conditions = conditionsPatch(proxy.status?.conditions ?? [], wanted.conditions ?? []);
  if (conditions.length > 0) status.conditions = conditions;
  if (Object.keys(status).length === 0) return undefined;
  return { metadata: { uid: proxy.metadata.uid }, status };
}

/** A strategic merge patch adds to maps and to some lists: the directive replaces what the proxy shows. */
function replacement(field: string, value: unknown, shown: unknown): unknown {
  if (MERGED_LISTS.has(field) && Array.isArray(value)) return [...value, { $patch: "replace" }];
  return isJsonObject(value) && isJsonObject(shown) ? { ...value, $patch: "replace" } : value;
}

function conditionsFrom(
  proxy: Pod,
  delegate: Stored<Pod>,
  { generationOf, gone }: { readonly generationOf: HostGeneration; readonly gone: boolean },
): PodCondition[] {
  const result = new Map((proxy.status?.conditions ?? []).map((condition) => [condition.type, condition]));
  const reported = delegate.status?.conditions ?? [];
  const followed = followedConditions(proxy, delegate, gone);
  for (const type of [...withdrawnGates(proxy, delegate), ...followed.withdrawn]) result.delete(type);
  // Deduplicates by type: a member may report one type many times.
  for (const [type, condition] of new Map(reported.map((condition) => [condition.type, condition]))) {
    if (isHostsGate(proxy, delegate, type) || followed.isHosts(type) || type === REFUSED_CONDITION) continue;
    // The host's own eviction may have set the condition; a member's False does not end that.
    if (condition.type === "DisruptionTarget" && condition.status !== "True") continue;
    if (!gone && isUnfinishedDisruption(delegate, condition)) continue;
    const ours = result.get(condition.type);
    // The host's Binding set PodScheduled; kubelets only confirm it.
    const said = condition.type === "PodScheduled" ? ours : condition;
    if (said === undefined) continue;
    const shown: PodCondition = { ...said };
    // The host's controller writes lastProbeTime, which is not forwarded. API servers write `null` for none.
    const probedAt = said.lastProbeTime ?? ours?.lastProbeTime;
    if (probedAt !== undefined && probedAt !== said.lastProbeTime) shown.lastProbeTime = probedAt;
    setGeneration(shown, generationOf(condition.observedGeneration) ?? ours?.observedGeneration);
    result.set(condition.type, shown);
  }
  for (const type of KUBELET_TEMPORARY_CONDITIONS) {
    if (!result.has(type) || reported.some((condition) => condition.type === type)) continue;
    // A refusal of a resize stays until the member is asked again.
    if (type === RESIZE_PENDING && !isTerminal(delegate) && resizeNeeded(proxy, delegate) !== undefined) continue;
    result.delete(type);
  }
  if (result.get(PLACED_CONDITION)?.status === "False") result.delete(PLACED_CONDITION);
  const added = addedCondition(proxy, delegate);
  // Whatever the member reports under this type.
  if (added === undefined) result.delete(ADDED_CONDITION);
  else result.set(ADDED_CONDITION, added);
  return [...result.values()];
}

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

/** Reports whether a disruption is not final: the host removes it after two minutes from a pod that goes on. */
function isUnfinishedDisruption(delegate: Pod, { type, status, reason }: PodCondition): boolean {
  if (type !== "DisruptionTarget" || status !== "True" || reason === "TerminationByKubelet") return false;
  return !isTerminal(delegate);
}

type HostGeneration = (observed: number | undefined) => number | undefined;

/** Generations of two objects compare only when both are the newest and no change is in flight. */
function hostGenerations(proxy: Pod, delegate: Stored<Pod>, refused: ResizeRefusal | undefined): HostGeneration {
  const current = specFollows(proxy, delegate, refused) ? proxy.metadata?.generation : undefined;
  return (observed) => (observed !== undefined && observed === delegate.metadata.generation ? current : undefined);
}

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

type Described = Pick<Container, "name" | "volumeMounts" | "resources">;

/** Members and overrides may add containers, mounts and devices that are not the proxy's. */
export function shownStatuses(
  statuses: readonly ContainerStatus[] | undefined,
  containers: readonly Described[] | undefined,
): ContainerStatus[] | undefined {
  const own = new Map(containers?.map((container) => [container.name, container]));
  const shown = (statuses ?? []).flatMap((status) => {
    const container = own.get(status.name);
    return container === undefined ? [] : [withOwnDevices(withOwnMounts(status, container), container)];
  });
  return shown.length === 0 ? undefined : shown;
}

type ExtendedResourceClaimStatus = NonNullable<PodStatus["extendedResourceClaimStatus"]>;

/** Drops requests of containers and resources that the proxy has not: the host's API server refuses them (core/validation). */
function withOwnRequests(
  status: ExtendedResourceClaimStatus | undefined,
  {
    containers = [],
    initContainers = [],
  }: Pick<PodSpec, "initContainers"> & { readonly containers?: readonly Container[] } = {},
): ExtendedResourceClaimStatus | undefined {
  if (status === undefined) return undefined;
  const own = new Map(
    [...initContainers, ...containers].map(({ name, resources }) => [name, resources?.requests ?? {}]),
  );
  const requestMappings = status.requestMappings.filter(
    ({ containerName, resourceName }) => own.get(containerName)?.[resourceName] !== undefined,
  );
  return requestMappings.length === 0 ? undefined : { ...status, requestMappings };
}

/** Drops devices that the proxy did not request: the host's API server refuses a status with them (core/validation). */
function withOwnDevices(status: ContainerStatus, { resources = {} }: Described): ContainerStatus {
  const { allocatedResourcesStatus: reported, ...rest } = status;
  if (reported === undefined) return status;
  const claims = (resources.claims ?? []).map(({ name, request = "" }) => `claim:${name}${request && `/${request}`}`);
  const own = new Set([...Object.keys(resources.requests ?? {}), ...claims]);
  const shown = reported.filter(({ name }) => own.has(name));
  return shown.length === 0 ? rest : { ...rest, allocatedResourcesStatus: shown };
}

/** Renames mounts by path: each cluster's admission names its token volume anew. */
function withOwnMounts(status: ContainerStatus, { volumeMounts = [] }: Described): ContainerStatus {
  const { volumeMounts: reported, ...rest } = status;
  if (reported === undefined) return status;
  const names = new Map(volumeMounts.map(({ mountPath, name }) => [mountPath, name]));
  const shown = reported.flatMap((mount) => {
    const name = names.get(mount.mountPath);
    return name === undefined ? [] : [{ ...mount, name }];
  });
  return shown.length === 0 ? rest : { ...rest, volumeMounts: shown };
}
