import type { Pod } from "../../../api/kubernetes.ts";
import { awaitsGang, dependsOnPodLabels, insufficientResources, withoutAmounts } from "../../../kube/messages.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import { BEING_REMOVED } from "../../../placement/member-candidate.ts";
import { because } from "../../../placement/needs.ts";
import type { Ranking } from "../../../placement/rank.ts";
import { mutatedRequests } from "../../../placement/refusal-messages.ts";
import { isGated, silentSchedulerMessage, unschedulableMessage } from "../../../pods/pod-state.ts";
import type { SharedBy } from "../../../scheduling/placement-view.ts";
import { allRefusals, nextRetry, openMembers, preemptable, withRefusal } from "../../../scheduling/retries/pause.ts";
import { type Action, type DelegationDecision, decided, type Phase } from "../decision/decision.ts";
import { boundMember, type DelegateHolder, holderOf, withdrawWaiting } from "../decision/delegates.ts";
import { forwards } from "../decision/forwarding.ts";
import { ranked } from "../decision/on-demand.ts";
import { report } from "../decision/report.ts";
import { type PodView, requestsIn, unknownPlacement } from "../decision/view.ts";
import { writeAgainAt } from "../decision/write-purpose.ts";

// A scheduler that has nominated a node preempts pods on it, and those may take long to end.
const PREEMPTION_MS = 10 * 60_000;

/** The member's scheduler has its time to find a node. After that the next member with room gets the pod. */
export const awaitScheduling: Phase = (observed, now) => {
  const holder = holderOf(observed);
  if (holder === undefined) return undefined;
  const unknown = unknownPlacement(observed);
  if (unknown !== undefined && holder.removed !== true) {
    const reports = report(unknown, observed, now);
    return goOn(holder, reports.actions, observed, now, reports.againAt);
  }
  const view = ranked(observed);
  const { ranking } = view;
  if (ranking === undefined) return decided("Scheduling", [], now);
  return leave(holder, ranking, view, now) ?? moveOn(holder, ranking, view, now) ?? wait(holder, ranking, view, now);
};

/** The pod has no other member to go to. After the scheduler's time other pods like it are not sent to this one. */
export const awaitBoundScheduling: Phase = (view, now) => {
  const { proxy, memory } = view;
  const member = boundMember(view);
  if (member?.delegate === undefined) return undefined;
  const { name, delegate, reachableSince, scheduleTimeoutMs, nodesVersion } = member;
  const refusal = refusalBy({ ...member, delegate });
  const why = because("NotPlaced", [refusal]);
  const changes = forwards(proxy, name, delegate, view, now);
  const again = writeAgainAt(memory, changes, now);
  const attempt = memory.attempts[name];
  const deadline = Math.max(attempt?.since ?? now, reachableSince) + scheduleTimeoutMs;
  const message = unschedulableMessage(delegate);
  if (message === undefined) {
    if (now < deadline) return decided("Scheduling", changes, deadline, again);
    const { actions, againAt } = report(why, view, now);
    return decided("Scheduling", [...actions, ...changes], againAt, again);
  }
  const { actions, againAt } = report(why, view, now);
  const reports = [...actions, ...changes];
  if (attempt === undefined || attempt.refusal !== undefined) return decided("Scheduling", reports, againAt, again);
  if (now < deadline) return decided("Scheduling", reports, deadline, againAt, again);
  const { uid: proxyUid } = proxy.metadata;
  const refuse: Action = { type: "noteRefusal", proxyUid, refusal, nodesVersion, sharedBy: unschedulableFor(delegate) };
  return decided("Scheduling", [...reports, refuse], againAt, again);
};

function leave(holder: DelegateHolder, ranking: Ranking, view: PodView, now: number): DelegationDecision | undefined {
  const { name, removed, nodesVersion } = holder;
  const withdrawal = withdrawWaiting(holder);
  // The group's leader has moved, or another pod of the group was faster to get a node.
  if (view.home !== undefined && view.home !== name) return decided("Withdrawing", withdrawal);
  const forbidden = forbiddenIn(holder, ranking.refusals);
  if (forbidden !== undefined) {
    const { actions, againAt } = report(because("NotPlaced", [forbidden]), view, now);
    return decided("Withdrawing", [...actions, ...withdrawal], againAt);
  }
  if (removed !== true) return undefined;
  const { uid: proxyUid } = view.proxy.metadata;
  const refusal: Refusal = { cluster: name, ...BEING_REMOVED };
  return decided("Withdrawing", [
    { type: "noteRefusal", proxyUid, refusal, nodesVersion, sharedBy: "spec" },
    ...withdrawal,
  ]);
}

/** Gives the pod to the next member, once the time of this one's scheduler is over. */
function moveOn(holder: DelegateHolder, ranking: Ranking, view: PodView, now: number): DelegationDecision | undefined {
  const { name, delegate, nodesVersion } = holder;
  const others = (members: readonly string[]): string[] => members.filter((other) => other !== name);
  const { deadline, message, preempts } = progressOf(holder, view, now);
  const hasAnswer = message !== undefined && !preempts;
  const [roomy] = others(openMembers(ranking.fitting, view, now));
  const [full] = hasAnswer && now >= deadline ? others(preemptable(ranking, view, now)) : [];
  // A pod that was parked leaves for the first member that has room: its member's scheduler had none to find. So does one
  // that would have been parked, had it been known what the member makes of it.
  const isParked = hasAnswer && (view.memory.attempts[name]?.parked === true || holder.overfull === true);
  if ((roomy ?? full) === undefined || !(now >= deadline || isParked)) return undefined;
  const { uid: proxyUid } = view.proxy.metadata;
  // A full member has no room to reserve: the pod is parked in it.
  const reservation: Action[] =
    roomy === undefined ? [] : [{ type: "reserve", member: roomy, proxyUid, requests: requestsIn(view, roomy) }];
  // Earlier refusals are listed with this one: without them the message would be new each time the pod comes round.
  const reports = message === undefined ? reportRefusals(holder, ranking, view, now, refusalsSoFar(view)) : undefined;
  const refusal = refusalBy(holder);
  const refuse: Action = { type: "noteRefusal", proxyUid, refusal, nodesVersion, sharedBy: unschedulableFor(delegate) };
  const actions = [...reservation, refuse, ...withdrawWaiting(holder), ...(reports?.actions ?? [])];
  return decided("Withdrawing", actions, reports?.againAt);
}

function wait(holder: DelegateHolder, ranking: Ranking, view: PodView, now: number): DelegationDecision {
  const { deadline, message } = progressOf(holder, view, now);
  const requeueAt = now < deadline ? deadline : nextRetry(view, now);
  if (message === undefined && now < deadline) return goOn(holder, [], view, now, requeueAt);
  const { actions, againAt } = reportRefusals(holder, ranking, view, now);
  return goOn(holder, actions, view, now, requeueAt, againAt);
}

/** Lets the delegate wait, and forwards changes: a toleration that is added may be all that it lacks. */
function goOn(
  { name, delegate }: DelegateHolder,
  reports: readonly Action[],
  view: PodView,
  now: number,
  ...times: readonly (number | undefined)[]
): DelegationDecision {
  const changes = forwards(view.proxy, name, delegate, view, now);
  return decided("Scheduling", [...reports, ...changes], ...times, writeAgainAt(view.memory, changes, now));
}

function progressOf(
  { name, delegate, reachableSince, scheduleTimeoutMs }: DelegateHolder,
  { memory }: PodView,
  now: number,
): { readonly message: string | undefined; readonly preempts: boolean; readonly deadline: number } {
  // The scheduler had no time while its API server could not be reached.
  const since = Math.max(memory.attempts[name]?.since ?? now, reachableSince);
  const preempts = (delegate.status?.nominatedNodeName ?? "") !== "";
  const deadline = since + scheduleTimeoutMs + (preempts ? PREEMPTION_MS : 0);
  return { message: unschedulableMessage(delegate), preempts, deadline };
}

function refusalBy({ name, delegate, mutation, scheduleTimeoutMs }: DelegateHolder): Refusal {
  const answer = unschedulableMessage(delegate) ?? silentSchedulerMessage(delegate, scheduleTimeoutMs / 1000);
  const said = awaitsGang(answer) ? "a node has room for it, but not for as many pods as its gang needs" : answer;
  const short = insufficientResources(said);
  const requested = mutation && mutatedRequests(mutation, (resource) => short.has(resource));
  const message = requested === undefined ? said : `${said} (${requested})`;
  return { cluster: name, reason: "Unschedulable", message, dedupe: withoutAmounts(message) };
}

function reportRefusals(
  holder: DelegateHolder,
  ranking: Ranking,
  view: PodView,
  now: number,
  earlier: readonly Refusal[] = [],
): ReturnType<typeof report> {
  const ofGang = ranking.refusals.find(({ cluster, reason }) => cluster === holder.name && reason === "NoRoomForGang");
  const own = ofGang ?? refusalBy(holder);
  const refusals = [...allRefusals(ranking, view, now), own].reduce(withRefusal, [...earlier]);
  return report(because("NotPlaced", refusals), view, now);
}

function refusalsSoFar({ memory }: PodView): Refusal[] {
  return Object.values(memory.attempts).flatMap(({ refusal }) => refusal ?? []);
}

/** A cordon, a taint or the Cluster's policy keeps unbound pods off the member, whatever room there is. */
function forbiddenIn({ name: cluster, repels }: DelegateHolder, refusals: readonly Refusal[]): Refusal | undefined {
  if (repels !== undefined) return { cluster, ...repels };
  return refusals.find((refusal) => refusal.cluster === cluster && refusal.reason === "NotPermitted");
}

/** Returns which other pods share that the scheduler found no node. Undefined: none, as its decision may depend on anything. */
export function unschedulableFor(delegate: Pod): SharedBy | undefined {
  if (isGated(delegate)) return undefined;
  const message = unschedulableMessage(delegate);
  // A scheduler that does not answer is one that the spec names.
  if (message === undefined) return "spec";
  if ((delegate.spec?.schedulerName ?? "default-scheduler") !== "default-scheduler") return undefined;
  return dependsOnPodLabels(message) ? "labels" : "spec";
}
