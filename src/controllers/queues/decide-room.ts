import { type Pod, type Stored, timestamp } from "../../api/kubernetes.ts";
import { type CheckEntry, type CheckState, isTrue, kueueCondition, type Workload } from "../../api/kueue-workload.ts";
import { age, counted } from "../../api/wording.ts";
import { isBound, isGated, isLive } from "../../pods/pod-state.ts";
import { whyNotPlaced } from "../../pods/proxy-conditions.ts";
import { backoffMs } from "../../runtime/backoff.ts";
import type { Decision } from "../../runtime/requeue.ts";

/** The answer to whether members have room for a workload now. */
export interface Verdict {
  readonly state: Exclude<CheckState, "Pending">;
  readonly message: string;
}

export interface Judged extends Verdict {
  readonly reservation: string;
}

export interface Observed {
  readonly workload: Stored<Workload>;
  /** The entries of AdmissionChecks that Legation answers. */
  readonly entries: readonly CheckEntry[];
  readonly judged: Judged | undefined;
  /** Time for an admitted workload's pods to find a place; ms. */
  readonly placeWithinMs: number;
  readonly pods: readonly Stored<Pod>[];
  /** Until when a refused write is held; epoch ms. */
  readonly heldUntil: number | undefined;
}

/** Writes all entries of `workload` that Legation owns. */
export interface Action {
  readonly type: "answer";
  readonly workload: Stored<Workload>;
  readonly entries: readonly CheckEntry[];
}

// Kueue gives the quota to others meanwhile. Members' room changes within seconds, and nothing tells Kueue of it.
const REQUEUE = { initialMs: 10_000, maxMs: 60_000 };

/** Answers a workload that has quota, and takes back an admission whose pods found no place within their time. */
export function decide(observed: Observed, now: number, wall: number = now): Decision<Action> {
  const { workload, entries, judged, heldUntil } = observed;
  if (!holdsQuota(workload)) return { actions: [], outcome: "NoQuota" };
  if (heldUntil !== undefined && heldUntil > now) return { actions: [], outcome: "Held", requeueAt: heldUntil };
  if (isAsking(workload, entries)) {
    if (judged === undefined || judged.reservation !== reservationOf(workload, entries)) {
      return { actions: [], outcome: "Asking" };
    }
    return { actions: [answer(observed, judged, wall)], outcome: judged.state };
  }
  if (!isTrue(workload, "Admitted") || entries.some(({ state }) => state !== "Ready")) {
    return { actions: [], outcome: "Answered" };
  }
  const dueAt = admittedAt(workload) + observed.placeWithinMs;
  if (wall < dueAt) return { actions: [], outcome: "Admitted", requeueAt: now + dueAt - wall };
  const message = unplaced(observed, dueAt);
  if (message === undefined) return { actions: [], outcome: "Placed" };
  return { actions: [answer(observed, { state: "Retry", message }, wall)], outcome: "Unplaced" };
}

function answer({ workload, entries }: Observed, { state, message }: Verdict, wall: number): Action {
  const written = entries.map((entry) => ({
    name: entry.name,
    state,
    message,
    lastTransitionTime: timestamp(wall),
    ...(state === "Retry" ? { requeueAfterSeconds: backoffMs(entry.retryCount ?? 0, REQUEUE) / 1000 } : {}),
  }));
  return { type: "answer", workload, entries: written };
}

/** Reports whether Kueue has reserved quota and does not take it back. */
export function holdsQuota(workload: Stored<Workload>): boolean {
  const { metadata, spec, status } = workload;
  return (
    metadata.deletionTimestamp === undefined &&
    spec?.active !== false &&
    status?.admission !== undefined &&
    isTrue(workload, "QuotaReserved") &&
    !isTrue(workload, "Evicted") &&
    !isTrue(workload, "Finished")
  );
}

/** Reports whether a workload with quota waits for Legation's answer. */
export function isAsking(workload: Stored<Workload>, entries: readonly CheckEntry[]): boolean {
  return holdsQuota(workload) && entries.some(({ state }) => state === "Pending");
}

/** Names a reservation of quota: a workload that is evicted and queued again has another one. */
export function reservationOf(workload: Stored<Workload>, entries: readonly CheckEntry[]): string {
  const reserved = kueueCondition(workload, "QuotaReserved")?.lastTransitionTime;
  const asked = entries.map(({ name, lastTransitionTime, retryCount }) => [name, lastTransitionTime, retryCount]);
  return JSON.stringify([workload.metadata.uid, reserved, asked]);
}

function admittedAt(workload: Stored<Workload>): number {
  return Date.parse(kueueCondition(workload, "Admitted")?.lastTransitionTime ?? "");
}

/** Says which pods found no place within their time. Undefined if all did: one that comes later takes another's place. */
function unplaced({ workload, pods, placeWithinMs }: Observed, dueAt: number): string | undefined {
  const inTime = pods.filter(({ metadata }) => !(Date.parse(metadata.creationTimestamp ?? "") > dueAt));
  const waiting = inTime.filter((pod) => isLive(pod) && !isBound(pod) && !isGated(pod));
  const [first] = waiting;
  if (first === undefined) return undefined;
  const { metadata } = workload;
  const why = whyNotPlaced(first)?.message ?? "no member has taken it yet";
  const of = `${waiting.length} of ${counted(inTime.length)} of ${metadata.name}`;
  return `${of} found no place within ${age(placeWithinMs)} of the admission: ${first.metadata.name}: ${why}`;
}
