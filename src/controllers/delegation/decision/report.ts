import { defined } from "../../../api/defined.ts";
import { virtualNodeName } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { WaitReason } from "../../../placement/needs.ts";
import { isBound } from "../../../pods/pod-state.ts";
import { soonest } from "../../../runtime/requeue.ts";
import { dedupeKey, REPEAT_EVENT_AFTER_MS } from "../../../runtime/told.ts";
import type { Reported, Telling } from "../../../scheduling/memory.ts";
import { growingPauseMs } from "../../../scheduling/retries/backoff.ts";
import { type Action, type DecisionOutcome, type DelegationDecision, decided } from "./decision.ts";
import type { MemberView, PodView } from "./view.ts";

// Each report is two writes. A message that differs only in which members answer is reported this often.
const REPORT_AGAIN_MS = 60_000;
// Spreads the repeated events of pods that began to wait together.
const SPREAD_MS = 9 * 60_000;
const NOT_READY = "ClusterNotReady";

/** The report of a reason to wait, if one is due, and when the next may be. */
export interface Report {
  readonly actions: readonly Action[];
  /** Epoch ms. */
  readonly againAt?: number;
}

export function waitBecause(
  why: WaitReason,
  view: PodView,
  now: number,
  {
    outcome = "Waiting",
    requeueAt,
  }: { readonly outcome?: DecisionOutcome; readonly requeueAt?: number | undefined } = {},
): DelegationDecision {
  const { actions, againAt } = report(why, view, now);
  return decided(outcome, actions, requeueAt, againAt);
}

export function notBound(member: string, detail: string): WaitReason {
  const node = virtualNodeName(member);
  const message = `${member}: has the pod, and this cluster refuses to bind it to node ${node}: ${detail}`;
  return { reason: "NotBound", message };
}

/** Returns undefined when the pod has waited this long. */
export function quietFor(ms: number, view: PodView, now: number): DelegationDecision | undefined {
  const until = waitingSince(view) + ms;
  return now < until ? decided("Waiting", [], until) : undefined;
}

/** Returns epoch ms. */
export function waitingSince({ waitingSince: since, proxy: { metadata } }: PodView): number {
  return since ?? (Date.parse(metadata.creationTimestamp ?? "") || 0);
}

/** Reports nothing while the last report says the same and its event has not expired. */
export function report(why: WaitReason, view: PodView, now: number): Report {
  const againAt = nextReportAt(view, now);
  const telling = tellingOf(why, view, now);
  const actions = telling === undefined ? [] : [reportAction(why, view.proxy, telling)];
  return { actions, ...defined({ againAt }) };
}

function reportAction({ reason, message, refusals }: WaitReason, proxy: Stored<Pod>, telling: Telling): Action {
  const { uid: proxyUid } = proxy.metadata;
  const bound: { bound?: true } = isBound(proxy) ? { bound: true } : {};
  const named = refusals === undefined ? {} : { refusals };
  return { type: "report", proxyUid, reason, message, ...named, ...bound, ...telling };
}

/** Returns the writes of the report that is due; undefined if none is. Each report is a write, unlike those of `isTold`. */
function tellingOf(
  why: WaitReason,
  { proxy, memory: { reported }, members }: PodView,
  now: number,
): Telling | undefined {
  if (reported === undefined) return {};
  const { at = 0, message, reason } = reported;
  if (message === why.message || (reason === why.reason && isSame(reported, why))) {
    if (reported.at !== undefined && now >= repeatAt(proxy, at)) return { again: true };
    return message !== why.message && now >= amountsAt(reported) ? { amounts: true } : undefined;
  }
  const novelty = noveltyOf(why, reported, members);
  return novelty === "news" || (novelty === "little" && now >= at + REPORT_AGAIN_MS) ? {} : undefined;
}

/** Returns when the next report may be due; epoch ms. */
function nextReportAt({ proxy, memory: { reported } }: PodView, now: number): number | undefined {
  if (reported?.at === undefined) return undefined;
  const { at } = reported;
  return soonest(...[at + REPORT_AGAIN_MS, amountsAt(reported), repeatAt(proxy, at)].filter((time) => now < time));
}

/** Returns when a message that differs in numbers alone is written next: after pauses that grow as those of retries. */
function amountsAt({ at = 0, amounts }: Reported): number {
  return (amounts?.at ?? at) + growingPauseMs(2 + (amounts?.count ?? 0));
}

/** Returns when a report is repeated, before the API server forgets its event; epoch ms. */
function repeatAt({ metadata: { uid } }: Stored<Pod>, at: number): number {
  // The first digits of a uid are random enough.
  const random = Number.parseInt(uid.slice(0, 8), 16);
  return at + REPEAT_EVENT_AFTER_MS + (Number.isNaN(random) ? 0 : random % SPREAD_MS);
}

/** How new a reason is. `none`: not worth a report. `little`: worth one a minute. `news`: reported at once. */
type Novelty = "none" | "little" | "news";

/** Where nothing else differs, a probe that failed once is no news: most such members are back in a moment. */
function noveltyOf(why: WaitReason, reported: Reported, members: readonly MemberView[]): Novelty {
  if (isSame(reported, why)) return "little";
  if (reported.reason !== why.reason) return "news";
  const faltering = new Set(members.filter((member) => member.faltering === true).map(({ name }) => name));
  if (isSame(reported, why, faltering)) return "none";
  const silent = [reported, why].flatMap(({ refusals = [] }) => refusals.filter((refusal) => refusal.silent === true));
  const except = new Set([...faltering, ...silent.map(({ cluster }) => cluster)]);
  return why.reason === NOT_READY || isSame(reported, why, except) ? "little" : "news";
}

function isSame(before: Reported | WaitReason, now: WaitReason, except: ReadonlySet<string> = new Set()): boolean {
  return comparable(before, except) === comparable(now, except);
}

function comparable({ message, refusals }: Reported | WaitReason, except: ReadonlySet<string>): string {
  if (refusals === undefined) return message;
  const parts = refusals.filter(({ cluster }) => !except.has(cluster));
  return JSON.stringify(parts.map((part) => [part.cluster, part.reason, dedupeKey(part)]).sort());
}
