import { FORWARDED_ANNOTATION, GROUP } from "../api/keys.ts";
import type { Pod, PodCondition, Stored } from "../api/kubernetes.ts";
import { jsonEqual } from "./equal.ts";
import type { ForwardPatch } from "./forward-patch.ts";
import { type ForwardedRecord, fingerprint, readRecord, writeRecord } from "./forwarded.ts";
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

/** Who has the word on a gate's condition. */
type GateSide = "same" | "host" | "member";

/** What a record says of gates. */
type GateRecord = Required<Pick<ForwardedRecord, "gates" | "gatePrints">>;

/** The conditions that the pod's author made its readiness wait for. */
function gatesOf({ spec }: Pod): string[] {
  return (spec?.readinessGates ?? [])
    .map(({ conditionType }) => conditionType)
    .filter((type) => !SYSTEM_CONDITIONS.has(type) && !type.startsWith(`${GROUP}/`));
}

/** Tells of types of conditions whether anybody may write them, on either side: no kubelet or scheduler does, nor Legation, and no gate waits for them. */
export function anybodys(pod: Pod): (type: string) => boolean {
  const gates = new Set(gatesOf(pod));
  return (type) => !SYSTEM_CONDITIONS.has(type) && !type.startsWith(`${GROUP}/`) && !gates.has(type);
}

/**
 * The host's conditions that the delegate's kubelet must know to reckon the pod's readiness, and those that the host has taken away;
 * undefined when it has them so. The same patch records them.
 */
export function gatePatch(proxy: Pod, delegate: Stored<Pod>): ForwardPatch | undefined {
  const types = gatesOf(proxy).filter((type) => sideOf(proxy, delegate, type) === "host");
  if (types.length === 0) return undefined;
  const conditions = types.map((type): object => {
    const ours = conditionOf(proxy, type);
    if (ours === undefined) return { type, $patch: "delete" };
    const { status, reason, message, lastTransitionTime } = ours;
    return defined({ type, status, reason, message, lastTransitionTime });
  });
  const record = writeRecord({ ...recordOn(delegate), ...agreedOn(proxy, delegate, "host") });
  const metadata = { uid: delegate.metadata.uid, annotations: { [FORWARDED_ANNOTATION]: record } };
  return { subresource: "status", body: { metadata, status: { conditions } } };
}

/** What the delegate's record is to say of the gates; `isNews`: both sides have come to agree on something that it does not say yet. */
export function recordedGates(
  proxy: Pod,
  delegate: Stored<Pod>,
): { readonly record: GateRecord; readonly isNews: boolean } {
  if (gatesOf(proxy).length === 0) return { record: { gates: [], gatePrints: {} }, isNews: false };
  const { gatePrints: earlier = {} } = recordOn(delegate);
  const record = agreedOn(proxy, delegate);
  return { record, isNews: !jsonEqual(record.gatePrints, earlier) };
}

/** True when the proxy's own condition of this type stays, or stays away, whatever the delegate says. */
export function isHostsGate(proxy: Pod, delegate: Stored<Pod>, type: string): boolean {
  return gatesOf(proxy).includes(type) && sideOf(proxy, delegate, type) === "host";
}

/** Types of the conditions that the proxy has from its delegate, which has them no more. */
export function withdrawnGates(proxy: Pod, delegate: Stored<Pod>): string[] {
  return gatesOf(proxy).filter(
    (type) => conditionOf(delegate, type) === undefined && sideOf(proxy, delegate, type) === "member",
  );
}

/**
 * Who opens a gate may be on either side: whoever has changed the condition since both had the same is right. Where both have, or
 * nobody knows what both had, the later change is, and the host's when nobody can tell.
 */
function sideOf(proxy: Pod, delegate: Stored<Pod>, type: string): GateSide {
  const ours = conditionOf(proxy, type);
  const theirs = conditionOf(delegate, type);
  if (printOf(ours) === printOf(theirs)) return "same";
  const { gates = [], gatePrints = {} } = recordOn(delegate);
  const agreed = gatePrints[type];
  if (agreed !== undefined && agreed === printOf(theirs)) return "host";
  if (agreed !== undefined && agreed === printOf(ours)) return "member";
  if (ours === undefined) return gates.includes(type) ? "host" : "member";
  return isNewer(theirs, ours) ? "member" : "host";
}

/** What both sides have the same, once the proxy's are forwarded of which `forwarded` has the word; what is disputed stays as it was. */
function agreedOn(proxy: Pod, delegate: Stored<Pod>, forwarded?: GateSide): GateRecord {
  const earlier = recordOn(delegate);
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

function recordOn({ metadata }: Stored<Pod>): ForwardedRecord {
  return readRecord(metadata.annotations?.[FORWARDED_ANNOTATION]);
}

function isNewer(a: PodCondition | undefined, b: PodCondition): boolean {
  // RFC 3339 in UTC with seconds, as API servers write it: comparable as text. Not everybody writes one.
  return (a?.lastTransitionTime ?? "") > (b.lastTransitionTime ?? "");
}

/** The fingerprint of what is forwarded of a condition; undefined when there is none. */
function printOf(condition: PodCondition | undefined): string | undefined {
  if (condition === undefined) return undefined;
  const { status, reason = "", message = "", lastTransitionTime = "" } = condition;
  return fingerprint([status, reason, message, lastTransitionTime]);
}

/** With `null` in place of what is absent: a patch takes it away. */
function defined(condition: Readonly<Record<string, string | undefined>>): object {
  return Object.fromEntries(Object.entries(condition).map(([field, value]) => [field, value ?? null]));
}
