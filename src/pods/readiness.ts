import { GROUP } from "../api/keys.ts";
import type { Pod, PodCondition, Stored } from "../api/kubernetes.ts";
import type { ForwardPatch } from "./forward.ts";
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
 * The host's conditions that the delegate's kubelet must know to reckon the pod's readiness; undefined when it does. Who
 * opens a gate may be on either side: whoever changed the condition last is right, and the host when nobody can tell.
 */
export function gatePatch(proxy: Pod, delegate: Stored<Pod>): ForwardPatch | undefined {
  const conditions = gatesOf(proxy).flatMap((type) => {
    const ours = conditionOf(proxy, type);
    const theirs = conditionOf(delegate, type);
    if (ours === undefined || isNewer(theirs, ours) || saysTheSame(ours, theirs)) return [];
    const { status, reason, message, lastTransitionTime } = ours;
    return [defined({ type, status, reason, message, lastTransitionTime })];
  });
  if (conditions.length === 0) return undefined;
  return { subresource: "status", body: { metadata: { uid: delegate.metadata.uid }, status: { conditions } } };
}

/** True when the proxy's own condition of this type stays, whatever the delegate says. */
export function isHostsGate(proxy: Pod, told: PodCondition): boolean {
  const ours = conditionOf(proxy, told.type);
  return ours !== undefined && gatesOf(proxy).includes(told.type) && !isNewer(told, ours);
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
