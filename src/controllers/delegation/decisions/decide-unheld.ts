import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import { explain } from "../../../placement/rank.ts";
import { decideLost } from "./decide-lost.ts";
import { bindTo, createIn, ranUntold } from "./delegates.ts";
import {
  type Action,
  CREATE_ENDS_MS,
  type DelegationDecision,
  type MemberView,
  mayHold,
  type Observed,
} from "./model.ts";
import { isPrepared, type Needs } from "./needs.ts";
import { allRefusals, nextExpiry, openMembers, parkable, rankFor, requestsFor } from "./ranking.ts";
import { type Report, report } from "./report.ts";
import { unknownPlacement } from "./unknown-placement.ts";

// What an earlier leader had sent to an API server that did not answer is done when it does, maybe just after it was read.
const SETTLES_MS = 1000;
// A pod that follows the first of its group does so within moments: only what takes longer is worth a condition and an event.
const FOLLOW_QUIETLY_MS = 5000;
// By then a member that was only slow has answered, and one that is lost is known to be: its probe hurries.
const AWAIT_MS = 10_000;
// A namespace is seen some moments after a pod that was created with it.
const OPT_IN_QUIETLY_MS = 5000;
// Members that are being read, when a controller begins to lead or one has joined, mostly have been by then.
const READ_QUIETLY_MS = 5000;
// Most creates that fail without a plain answer succeed, or are refused, soon after.
const DOUBT_QUIETLY_MS = 5000;
// Another member may have the pod then, once it is sure that this one has not.
const DOUBT_MS = 30_000;

const NOTHING: DelegationDecision = { actions: [], outcome: "Waiting" };

/** No member is known to have the delegate: once it is sure that none has, and that all is known, the best one gets it. */
export function decideUnheld(proxy: Stored<Pod>, observed: Observed, now: number): DelegationDecision {
  const early =
    recoverDeparted(proxy, observed) ??
    awaitPlacement(proxy, observed, now) ??
    awaitDenials(proxy, observed, now) ??
    awaitGroup(proxy, observed, now);
  if (early !== undefined) return early;
  const needs = observed.needs?.();
  return awaitNeeds(proxy, observed, needs, now) ?? chooseMember(proxy, observed, needs, now);
}

/** It has run and gone before the host was told: bound to what it had, its end is told as of any other. */
function recoverDeparted(proxy: Stored<Pod>, { members }: Observed): DelegationDecision | undefined {
  for (const member of members) {
    const departed = ranUntold(member, proxy);
    if (departed !== undefined) return { actions: [bindTo(proxy, member, departed)], outcome: "Binding" };
  }
  return undefined;
}

function awaitPlacement(proxy: Stored<Pod>, observed: Observed, now: number): DelegationDecision | undefined {
  const unknown = unknownPlacement(observed);
  if (unknown === undefined) return undefined;
  const quiet = observed.invalid === undefined ? quietFor(OPT_IN_QUIETLY_MS, proxy, observed, now) : undefined;
  return quiet ?? waiting(proxy, observed, { ...unknown, now });
}

/** Members that may have its delegate all the same must have shown or denied it. */
function awaitDenials(proxy: Stored<Pod>, observed: Observed, now: number): DelegationDecision | undefined {
  const { members, memory, excludes } = observed;
  const reason = "ClusterNotReady";
  const uncertain = members.find(({ name }) => name === memory.uncertain);
  if (uncertain?.reachable === true) return decideDoubt(proxy, uncertain.name, observed, now);
  if (uncertain !== undefined) return decideLost(proxy, uncertain, observed, { has: "may have", now });
  const holding = members.filter(({ name, candidate }) => mayHold(memory, name) && excludes(candidate) === undefined);
  const unasked = unaskedOf(holding, observed);
  const unread = holding.filter((member) => !member.read || (!member.reachable && unasked.includes(member)));
  if (unread.length > 0) {
    const quiet = quietFor(READ_QUIETLY_MS, proxy, observed, now);
    if (quiet !== undefined && unread.every(({ faltering }) => faltering)) return quiet;
    const names = unread.map(({ name }) => name).join(", ");
    const since = memory.fresh ? "its address changed" : "the controller started";
    const message = `${names}: may have the pod from before ${since}, and has not answered since`;
    return waiting(proxy, observed, { reason, message, now });
  }
  const settledAt = Math.max(...holding.map(settlesAt));
  if (now < settledAt) return { ...NOTHING, requeueAt: settledAt };
  if (unasked.length === 0) return undefined;
  const asked = unasked.map((member) => ({ name: member.name, since: settlesAt(member) }));
  return { actions: [{ type: "ask", proxyUid: proxy.metadata.uid, members: asked }], outcome: "Waiting" };
}

/**
 * Members that may have made the delegate for an earlier leader after they were read: their watches may be behind. Where only one member
 * may have the pod, the name refuses a second delegate. Once a member has shown it, or this leader has made it, the earlier one's last is known.
 */
function unaskedOf(holding: readonly MemberView[], { members, memory, excludes }: Observed): MemberView[] {
  const open = members.filter(({ candidate }) => excludes(candidate) === undefined);
  if (memory.fresh || memory.attempts.size > 0 || open.length < 2) return [];
  return holding.filter(({ name }) => memory.denied?.has(name) !== true);
}

/** When all that an earlier leader had sent to the member has been done; epoch ms. */
function settlesAt({ reachableSince }: MemberView): number {
  return reachableSince + SETTLES_MS;
}

/** The member may have the pod, and answers without saying so: it is asked again and again, unless another could have the pod. */
function decideDoubt(proxy: Stored<Pod>, name: string, observed: Observed, now: number): DelegationDecision {
  const { doubt } = observed.memory;
  if (observed.apiPending?.(name) === true) return { ...NOTHING, requeueAt: now + SETTLES_MS };
  // The same create again gives a definite answer: it is made now, or it was made before.
  const again = create(proxy, observed, name);
  if (doubt === undefined || now < doubt.since + DOUBT_QUIETLY_MS) return again;
  const message = `${name}: may have the pod, and fails to say so: ${doubt.message}`;
  const told = report(proxy, observed, { reason: "ClusterNotReady", message, now });
  const { fitting } = rankFor(proxy, observed, observed.needs?.());
  const hasOther = openMembers(fitting, observed, now).some((other) => other !== name);
  if (now < doubt.since + DOUBT_MS || !hasOther) return { ...again, actions: [...told, ...again.actions] };
  const over = doubt.lastAt + CREATE_ENDS_MS;
  if (now < over) return { actions: told, outcome: "Waiting", requeueAt: over };
  const refusal: Refusal = { cluster: name, reason: "RefusedByMember", message: doubt.message };
  const resolve: Action = { type: "resolve", member: name, proxyUid: proxy.metadata.uid, refusal };
  return { actions: [...told, resolve], outcome: "Placing" };
}

function awaitGroup(proxy: Stored<Pod>, observed: Observed, now: number): DelegationDecision | undefined {
  return observed.follows === true ? quietFor(FOLLOW_QUIETLY_MS, proxy, observed, now) : undefined;
}

/** What else must be known or there before a member is chosen; most of it comes by an event of its own. */
function awaitNeeds(
  proxy: Stored<Pod>,
  observed: Observed,
  needs: Needs | undefined,
  now: number,
): DelegationDecision | undefined {
  if (needs?.state === "missing") {
    const { reason, message } = needs;
    return waiting(proxy, observed, { reason, message, now });
  }
  return needs?.state === "awaited" || observed.settling === true ? NOTHING : undefined;
}

function chooseMember(
  proxy: Stored<Pod>,
  observed: Observed,
  needs: Needs | undefined,
  now: number,
): DelegationDecision {
  const { members, memory } = observed;
  const { uid: proxyUid } = proxy.metadata;
  const ranking = rankFor(proxy, observed, needs);
  const occupied = new Set(members.filter(({ delegate }) => delegate !== undefined).map(({ name }) => name));
  const free = (names: readonly string[]): string[] => openMembers(names, observed, now);
  // The promised room counts as used there, so that the member looks full for the pod it is kept for.
  const isLate = (name: string): boolean =>
    members.some((each) => each.name === name && each.candidate.overdue === true);
  const promised = free(ranking.full).filter((name) => name === memory.promised && !isLate(name));
  const fitting = [...promised, ...free(ranking.fitting)];
  const [awaited] = free(ranking.awaited === undefined ? [] : [ranking.awaited]);
  const awaitUntil = waitingSince(proxy, observed) + AWAIT_MS;
  if (awaited !== undefined && fitting[0] !== awaited && promised.length === 0 && now < awaitUntil) {
    // Its place there is kept, so that the others of its workload have theirs elsewhere.
    const requests = requestsFor(proxy, observed, awaited);
    const promise: Action = { type: "promise", member: awaited, proxyUid, requests };
    const actions = memory.promised === awaited ? [] : [promise];
    return { actions, outcome: "Waiting", requeueAt: awaitUntil };
  }
  const choices = fitting.length > 0 ? fitting : parkable(ranking, observed, now);
  // A delegate of an earlier proxy is still under that name: its end is an event of its own, but it may never come.
  const vacant = now < awaitUntil ? undefined : choices.find((name) => !occupied.has(name));
  const best = vacant ?? choices[0];
  if (best === undefined) {
    const quiet = quietFor(READ_QUIETLY_MS, proxy, observed, now);
    if (quiet !== undefined && members.some(({ faltering }) => faltering)) return quiet;
    const message = explain(allRefusals(ranking, observed, now));
    return waiting(proxy, observed, { reason: "NotPlaced", message, now }, nextExpiry(observed, now));
  }
  if (occupied.has(best)) {
    if (now < awaitUntil) return { actions: [], outcome: "Withdrawing", requeueAt: awaitUntil };
    const message = `${best}: still has the delegate of an earlier pod of that name`;
    return waiting(proxy, observed, { reason: "NotPlaced", message, now }, nextExpiry(observed, now));
  }
  if (!isPrepared(needs, best)) return { actions: [{ type: "prepare", member: best, proxyUid }], outcome: "Preparing" };
  return create(proxy, observed, best, fitting.length === 0);
}

function create(proxy: Stored<Pod>, observed: Observed, member: string, parked = false): DelegationDecision {
  return { actions: [createIn(proxy, observed, member, parked)], outcome: "Placing" };
}

function waiting(proxy: Stored<Pod>, observed: Observed, why: Report, requeueAt?: number): DelegationDecision {
  const actions = report(proxy, observed, why);
  return { actions, outcome: "Waiting", ...(requeueAt === undefined ? {} : { requeueAt }) };
}

/** Nothing is said yet of a pod that has not waited for so long; undefined when it has. */
function quietFor(ms: number, proxy: Stored<Pod>, observed: Observed, now: number): DelegationDecision | undefined {
  const until = waitingSince(proxy, observed) + ms;
  return now < until ? { ...NOTHING, requeueAt: until } : undefined;
}

/** Since when it waits for a member, as far as is known; epoch ms. */
function waitingSince({ metadata }: Stored<Pod>, observed: Observed): number {
  return observed.waitingSince ?? (Date.parse(metadata.creationTimestamp ?? "") || 0);
}
