import { virtualNodeName } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { isBound } from "../../../pods/pod-state.ts";
import { REPEAT_EVENT_AFTER_MS } from "../../../runtime/held-writes.ts";
import { type Action, type DelegationDecision, decided, type Outcome, soonest } from "./decision.ts";
import type { Told } from "./memory.ts";
import type { WaitReason } from "./needs.ts";
import type { MemberView, PodView } from "./view.ts";

// Each report is two writes. A message that differs in numbers only, or in which members answer, is reported this often.
const REPORT_AGAIN_MS = 60_000;
// Spreads the repeated events of pods that began to wait together.
const SPREAD_MS = 9 * 60_000;
const NOT_READY = "ClusterNotReady";

/** A report to the author of a pod that waits, and when the next one may be due. */
export interface Report {
  readonly actions: readonly Action[];
  /** Epoch ms. */
  readonly againAt?: number;
}

/** Returns a decision to wait for this reason, which the author is told. */
export function waitFor(
  why: WaitReason,
  view: PodView,
  now: number,
  { outcome = "Waiting", requeueAt }: { readonly outcome?: Outcome; readonly requeueAt?: number | undefined } = {},
): DelegationDecision {
  const { actions, againAt } = report(why, view, now);
  return decided(outcome, actions, requeueAt, againAt);
}

/** Returns the reason of a pod that a member has and that the host refuses to bind. */
export function notBound(member: string, detail: string): WaitReason {
  const node = virtualNodeName(member);
  const message = `${member}: has the pod, and this cluster refuses to bind it to node ${node}: ${detail}`;
  return { reason: "NotBound", message };
}

/** Returns a decision to wait without a report until the pod has waited this long; undefined when it has. */
export function quietFor(ms: number, view: PodView, now: number): DelegationDecision | undefined {
  const until = waitingSince(view) + ms;
  return now < until ? decided("Waiting", [], until) : undefined;
}

/** Returns since when the pod waits for a member, as far as is known; epoch ms. */
export function waitingSince({ waitingSince: since, proxy: { metadata } }: PodView): number {
  return since ?? (Date.parse(metadata.creationTimestamp ?? "") || 0);
}

/**
 * Returns the report of a reason. Nothing is reported while the last report says the same and its event has not expired. What
 * differs little from it is reported once a minute at most.
 */
export function report(why: WaitReason, view: PodView, now: number): Report {
  const againAt = nextReportAt(view, now);
  const actions = isDue(why, view, now) ? [reportAction(why, view)] : [];
  return { actions, ...(againAt === undefined ? {} : { againAt }) };
}

function reportAction({ reason, message, refusals }: WaitReason, { proxy, memory }: PodView): Action {
  const { uid: proxyUid } = proxy.metadata;
  const bound: { bound?: true } = isBound(proxy) ? { bound: true } : {};
  const again: { again?: true } = memory.told?.message === message ? { again: true } : {};
  const named = refusals === undefined ? {} : { refusals };
  return { type: "report", proxyUid, reason, message, ...named, ...bound, ...again };
}

function isDue(why: WaitReason, { proxy, memory: { told }, members }: PodView, now: number): boolean {
  if (told === undefined) return true;
  if (told.message === why.message) return told.at !== undefined && now >= repeatAt(proxy, told.at);
  const novelty = noveltyOf(why, told, members);
  return novelty === "news" || (novelty === "little" && now >= (told.at ?? 0) + REPORT_AGAIN_MS);
}

/** Returns when the next report may be due; epoch ms. */
function nextReportAt({ proxy, memory: { told } }: PodView, now: number): number | undefined {
  if (told?.at === undefined) return undefined;
  return soonest(...[told.at + REPORT_AGAIN_MS, repeatAt(proxy, told.at)].filter((at) => now < at));
}

/** Returns when a report is repeated, before the API server forgets its event; epoch ms. */
function repeatAt({ metadata: { uid } }: Stored<Pod>, at: number): number {
  // The first digits of a uid are random enough.
  const random = Number.parseInt(uid.slice(0, 8), 16);
  return at + REPEAT_EVENT_AFTER_MS + (Number.isNaN(random) ? 0 : random % SPREAD_MS);
}

/** How new a reason is. `none`: not worth a report. `little`: worth one a minute. `news`: reported at once. */
type Novelty = "none" | "little" | "news";

/**
 * Returns how much a reason differs from the last one. A member that is lost or recovers changes the reasons of all pods that
 * wait. Where nothing else differs, a probe that failed once is not reported: most such members are back in a moment.
 */
function noveltyOf(why: WaitReason, told: Told, members: readonly MemberView[]): Novelty {
  if (isSame(told, why)) return "little";
  if (told.reason !== why.reason) return "news";
  const faltering = new Set(members.filter((member) => member.faltering === true).map(({ name }) => name));
  if (isSame(told, why, faltering)) return "none";
  const silent = [told, why].flatMap(({ refusals = [] }) => refusals.filter((refusal) => refusal.silent === true));
  const except = new Set([...faltering, ...silent.map(({ cluster }) => cluster)]);
  return why.reason === NOT_READY || isSame(told, why, except) ? "little" : "news";
}

/** Reports whether all members but these have the same reason. */
function isSame(before: Told | WaitReason, now: WaitReason, except: ReadonlySet<string> = new Set()): boolean {
  return comparable(before, except) === comparable(now, except);
}

function comparable({ message, refusals }: Told | WaitReason, except: ReadonlySet<string>): string {
  if (refusals === undefined) return message;
  const parts = refusals.filter(({ cluster }) => !except.has(cluster));
  return JSON.stringify(
    parts.map(({ cluster, reason, message, dedupe = message }) => [cluster, reason, dedupe]).sort(),
  );
}
