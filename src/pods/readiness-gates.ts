import { jsonEqual } from "../api/json.ts";
import { FORWARDED_ANNOTATION, GROUP } from "../api/keys.ts";
import type { Pod, PodCondition, Stored } from "../api/kubernetes.ts";
import type { ForwardedRecord } from "./compact-record.ts";
import { fingerprint } from "./fingerprints.ts";
import { type ForwardPatch, recordOf, writeRecord } from "./forward-record.ts";
import { conditionOf } from "./pod-state.ts";

// Written by kubelets (kubelet/types/pod_status.go) and schedulers: such a gate opens by itself.
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

type GateSide = "same" | "host" | "member";

type GateRecord = Required<Pick<ForwardedRecord, "gates" | "gatePrints">>;

/** Leaves out the gates that kubelets write. */
function gatesOf({ spec }: Pod): string[] {
  return (spec?.readinessGates ?? [])
    .map(({ conditionType }) => conditionType)
    .filter((type) => !SYSTEM_CONDITIONS.has(type) && !type.startsWith(`${GROUP}/`));
}

/** No kubelet, scheduler, gate or Legation writes such a condition. */
export function otherConditions(pod: Pod): (type: string) => boolean {
  const gates = new Set(gatesOf(pod));
  return (type) => !SYSTEM_CONDITIONS.has(type) && !type.startsWith(`${GROUP}/`) && !gates.has(type);
}

/** Returns the patch that forwards gate conditions to the delegate, whose kubelet computes Ready by them. */
export function gatePatch(proxy: Pod, delegate: Stored<Pod>): ForwardPatch | undefined {
  const types = gatesOf(proxy).filter((type) => sideOf(proxy, delegate, type) === "host");
  if (types.length === 0) return undefined;
  const conditions = types.map((type): object => {
    const ours = conditionOf(proxy, type);
    if (ours === undefined) return { type, $patch: "delete" };
    const { status, reason, message, lastTransitionTime } = ours;
    return defined({ type, status, reason, message, lastTransitionTime });
  });
  const record = writeRecord({ ...recordOf(proxy, delegate), ...agreedOn(proxy, delegate, "host") }, proxy);
  const metadata = { uid: delegate.metadata.uid, annotations: { [FORWARDED_ANNOTATION]: record } };
  return { subresource: "status", body: { metadata, status: { conditions } } };
}

/** `isNews`: the record differs. */
export function recordedGates(
  proxy: Pod,
  delegate: Stored<Pod>,
): { readonly record: GateRecord; readonly isNews: boolean } {
  if (gatesOf(proxy).length === 0) return { record: { gates: [], gatePrints: {} }, isNews: false };
  const { gatePrints: earlier = {} } = recordOf(proxy, delegate);
  const record = agreedOn(proxy, delegate);
  return { record, isNews: !jsonEqual(record.gatePrints, earlier) };
}

/** Reports whether the host's value of the gate counts, or its absence. */
export function isHostsGate(proxy: Pod, delegate: Stored<Pod>, type: string): boolean {
  return gatesOf(proxy).includes(type) && sideOf(proxy, delegate, type) === "host";
}

export function withdrawnGates(proxy: Pod, delegate: Stored<Pod>): string[] {
  return gatesOf(proxy).filter(
    (type) => conditionOf(delegate, type) === undefined && sideOf(proxy, delegate, type) === "member",
  );
}

/** If both sides changed the condition, or no record exists, the later change counts, then the host's. */
function sideOf(proxy: Pod, delegate: Stored<Pod>, type: string): GateSide {
  const ours = conditionOf(proxy, type);
  const theirs = conditionOf(delegate, type);
  if (printOf(ours) === printOf(theirs)) return "same";
  const { gates = [], gatePrints = {} } = recordOf(proxy, delegate);
  const agreed = gatePrints[type];
  if (agreed !== undefined && agreed === printOf(theirs)) return "host";
  if (agreed !== undefined && agreed === printOf(ours)) return "member";
  if (ours === undefined) return gates.includes(type) ? "host" : "member";
  return isNewer(theirs, ours) ? "member" : "host";
}

/** Disputed gates keep their record. */
function agreedOn(proxy: Pod, delegate: Stored<Pod>, forwarded?: GateSide): GateRecord {
  const earlier = recordOf(proxy, delegate);
  const gates: string[] = [];
  const gatePrints: Record<string, string> = {};
  for (const type of gatesOf(proxy)) {
    const side = sideOf(proxy, delegate, type);
    const isAgreed = side === "same" || side === forwarded;
    const print = isAgreed ? printOf(conditionOf(proxy, type)) : earlier.gatePrints?.[type];
    if (print !== undefined || (!isAgreed && earlier.gates?.includes(type))) gates.push(type);
    if (print !== undefined) gatePrints[type] = print;
  }
  return { gates, gatePrints };
}

function isNewer(a: PodCondition | undefined, b: PodCondition): boolean {
  // RFC 3339 in UTC with seconds compares as text. It may be absent.
  return (a?.lastTransitionTime ?? "") > (b.lastTransitionTime ?? "");
}

function printOf(condition: PodCondition | undefined): string | undefined {
  if (condition === undefined) return undefined;
  const { status, reason = "", message = "", lastTransitionTime = "" } = condition;
  return fingerprint([status, reason, message, lastTransitionTime]);
}

/** A patch removes `null`. */
function defined(condition: Readonly<Record<string, string | undefined>>): object {
  return Object.fromEntries(Object.entries(condition).map(([field, value]) => [field, value ?? null]));
}
