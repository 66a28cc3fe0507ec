import { FORWARDED_ANNOTATION, GROUP } from "../api/keys.ts";
import type { Pod, PodCondition, Stored } from "../api/kubernetes.ts";
import type { ForwardPatch } from "./forward-patch.ts";
import { type ForwardedRecord, readRecord, writeRecord } from "./forwarded.ts";
import { conditionOf } from "./phase.ts";

// Written by kubelets (kubelet/types/pod_status.go) and schedulers: a gate of such a name opens by itself.
const SYSTEM_CONDITIONS: ReadonlySet<string> = new Set([
  "PodScheduled",
  "Ready",
  "Initialized",
  "ContainersReady",
  "PodReadyToStartContainers",
  "PodResizePending",
  "PodResizeInProgress",
  "AllContainersRestarting",
  "DisruptionTarget",
]);

/** The conditions that the pod's author made its readiness wait for. */
function gatesOf({ spec }: Pod): string[] {
  return (spec?.readinessGates ?? [])
    .map(({ conditionType }) => conditionType)
    .filter((type) => !SYSTEM_CONDITIONS.has(type) && !type.startsWith(`${GROUP}/`));
}

/**
 * The host's conditions that the delegate's kubelet must know to reckon the pod's readiness, and those that it had from the
 * host, which are there no more; undefined when it has them so. Who opens a gate may be on either side: whoever changed the
 * condition last is right, and the host when nobody can tell. The same patch records which are the host's.
 */
export function gatePatch(proxy: Pod, delegate: Stored<Pod>): ForwardPatch | undefined {
  const conditions = gatesOf(proxy).flatMap((type): object[] => {
    const ours = conditionOf(proxy, type);
    if (ours === undefined) return isForwarded(delegate, type) ? [{ type, $patch: "delete" }] : [];
    if (!isToForward(ours, delegate)) return [];
    const { status, reason, message, lastTransitionTime } = ours;
    return [defined({ type, status, reason, message, lastTransitionTime })];
  });
  if (conditions.length === 0) return undefined;
  const record = writeRecord({ ...recordOn(delegate), gates: forwardedGates(proxy, delegate) });
  const metadata = { uid: delegate.metadata.uid, annotations: { [FORWARDED_ANNOTATION]: record } };
  return { subresource: "status", body: { metadata, status: { conditions } } };
}

/** Types of the conditions that the delegate has from the proxy, once they were forwarded. */
export function forwardedGates(proxy: Pod, delegate: Stored<Pod>): string[] {
  return gatesOf(proxy).filter((type) => {
    const ours = conditionOf(proxy, type);
    return ours !== undefined && (isForwarded(delegate, type) || isToForward(ours, delegate));
  });
}

/** True when the proxy's own condition of this type stays, or stays away, whatever the delegate says. */
export function isHostsGate(proxy: Pod, delegate: Stored<Pod>, told: PodCondition): boolean {
  if (!gatesOf(proxy).includes(told.type)) return false;
  const ours = conditionOf(proxy, told.type);
  return ours === undefined ? isForwarded(delegate, told.type) : !isNewer(told, ours);
}

function isToForward(ours: PodCondition, delegate: Stored<Pod>): boolean {
  const theirs = conditionOf(delegate, ours.type);
  return !isNewer(theirs, ours) && !saysTheSame(ours, theirs);
}

function isForwarded(delegate: Stored<Pod>, type: string): boolean {
  return recordOn(delegate).gates?.includes(type) ?? false;
}

function recordOn({ metadata }: Stored<Pod>): ForwardedRecord {
  return readRecord(metadata.annotations?.[FORWARDED_ANNOTATION]);
}

function isNewer(a: PodCondition | undefined, b: PodCondition): boolean {
  // RFC 3339 in UTC with seconds, as API servers write it: comparable as text. Not everybody writes one.
  return (a?.lastTransitionTime ?? "") > (b.lastTransitionTime ?? "");
}

function saysTheSame(a: PodCondition, b: PodCondition | undefined): boolean {
  const fields = ["status", "reason", "message", "lastTransitionTime"] as const;
  return b !== undefined && fields.every((field) => (a[field] ?? "") === (b[field] ?? ""));
}

/** With `null` in place of what is absent: a patch takes it away. */
function defined(condition: Readonly<Record<string, string | undefined>>): object {
  return Object.fromEntries(Object.entries(condition).map(([field, value]) => [field, value ?? null]));
}
