import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { Amounts } from "../../api/quantity.ts";
import type { Candidate, Refusal, Rule } from "../../placement/candidate.ts";
import { BEING_REMOVED, NO_VIRTUAL_NODE } from "../../placement/member-candidate.ts";
import { explain, type RankInput, type Ranking, rank } from "../../placement/rank.ts";
import { podRequests } from "../../placement/requests.ts";
import { ownerOf, toDelegate } from "../../pods/delegate.ts";
import {
  hasStarted,
  isBound,
  isDeleting,
  isGated,
  isTerminal,
  silentSchedulerMessage,
  unschedulableMessage,
} from "../../pods/phase.ts";
import { forwards } from "./decide-forwarding.ts";
import {
  type Action,
  type Attempt,
  type DelegationDecision,
  type MemberView,
  mayHold,
  type Needs,
  type Observed,
} from "./model.ts";

// What an earlier leader had sent to an API server that did not answer is done when it does, maybe just after it was read.
const SETTLES_MS = 1000;
// A pod that follows the first of its group does so within moments: only what takes longer is worth a condition and an event.
const FOLLOW_QUIETLY_MS = 5000;
// By then a member that was only slow has answered, and one that is lost is known to be: its probe hurries.
const AWAIT_MS = 10_000;

/** A proxy without a node: give it to one member, let that member's scheduler answer, then bind it. */
export function decidePlacing(proxy: Stored<Pod>, observed: Observed, now: number): DelegationDecision {
  if (isGated(proxy)) return { actions: [], outcome: "Gated" };
  const holders = observed.members.filter(({ delegate }) => isFor(delegate, proxy));
  const stays = ({ candidate }: MemberView): boolean => candidate.closed !== BEING_REMOVED;
  const holder =
    holders.find(({ delegate }) => delegate !== undefined && isBound(delegate)) ?? holders.find(stays) ?? holders[0];
  if (holder?.delegate !== undefined) {
    // A cluster that has joined under two names shows one delegate twice.
    const surplus = holders.filter(({ delegate }) => delegate?.metadata.uid !== holder.delegate?.metadata.uid);
    if (surplus.length > 0) return { actions: surplus.flatMap(withdraw), outcome: "Withdrawing" };
    return decideHeld(proxy, holder, holder.delegate, observed, now);
  }
  return decideUnheld(proxy, observed, now);
}

/** True when the pod is the delegate of exactly this proxy. */
export function isFor(delegate: Pod | undefined, proxy: Stored<Pod>): boolean {
  return delegate !== undefined && ownerOf(delegate)?.uid === proxy.metadata.uid;
}

/** Deletes a member's delegate; nothing when it cannot be reached or is on its way out. */
export function withdraw({ name, reachable, delegate }: MemberView): Extract<Action, { readonly type: "delete" }>[] {
  if (!reachable || delegate === undefined || isDeleting(delegate)) return [];
  return [{ type: "delete", member: name, uid: delegate.metadata.uid }];
}

function bindTo(proxy: Stored<Pod>, { name: member }: MemberView, delegate: Stored<Pod>): Action {
  const { uid: proxyUid } = proxy.metadata;
  const memberNode = delegate.spec?.nodeName ?? "";
  return { type: "bind", member, proxyUid, delegateUid: delegate.metadata.uid, memberNode };
}

function decideHeld(
  proxy: Stored<Pod>,
  holder: MemberView,
  delegate: Stored<Pod>,
  observed: Observed,
  now: number,
): DelegationDecision {
  if (!holder.reachable) {
    const message = `${holder.name}: has the pod and does not answer; no other member gets it before that is known`;
    return { actions: report(proxy, observed, "ClusterNotReady", message), outcome: "Unreachable" };
  }
  if (isDeleting(delegate)) return { actions: [], outcome: "Withdrawing" };
  if (isBound(delegate) || isTerminal(delegate)) {
    if (holder.candidate.closed === NO_VIRTUAL_NODE) {
      const message = `${holder.name}: ${NO_VIRTUAL_NODE.message}`;
      return { actions: report(proxy, observed, NO_VIRTUAL_NODE.reason, message), outcome: "Waiting" };
    }
    const bind = bindTo(proxy, holder, delegate);
    return { actions: [bind, ...announce(proxy, holder, observed)], outcome: "Binding" };
  }

  const message = unschedulableMessage(delegate);
  // Its scheduler has had no time while its API server could not be reached.
  const since = Math.max(observed.memory.attempts.get(holder.name)?.since ?? now, holder.reachableSince);
  const deadline = since + holder.scheduleTimeoutMs;
  const refusal: Refusal = {
    cluster: holder.name,
    reason: "Unschedulable",
    message: message ?? silentSchedulerMessage(delegate, holder.scheduleTimeoutMs / 1000),
  };
  // Unless the scheduler has found a node meanwhile: what may have started there must not be run elsewhere.
  const { resourceVersion } = delegate.metadata;
  const withdrawal = withdraw(holder).map((action) => ({ ...action, resourceVersion }));
  const ranking = rankFor(proxy, observed, observed.needs?.());
  const forbidden = ranking.refusals.find(
    ({ cluster, reason }) => cluster === holder.name && reason === "NotPermitted",
  );
  if (forbidden !== undefined) {
    return {
      actions: [...report(proxy, observed, "NotPlaced", explain([forbidden])), ...withdrawal],
      outcome: "Withdrawing",
    };
  }
  // Its Cluster is being deleted: nobody would hear any more of what is left there.
  if (holder.candidate.closed === BEING_REMOVED) {
    const refuse: Action = {
      type: "refuse",
      proxyUid: proxy.metadata.uid,
      refusal: { cluster: holder.name, ...BEING_REMOVED },
      nodesVersion: holder.nodesVersion,
    };
    return { actions: [refuse, ...withdrawal], outcome: "Withdrawing" };
  }
  const [next] = openMembers(ranking.fitting, observed, now).filter((name) => name !== holder.name);
  // Where no member had room, the member's scheduler has nothing to find out: the first that has room gets the pod.
  const parked = message !== undefined && observed.memory.attempts.get(holder.name)?.parked === true;
  if (next !== undefined && (now >= deadline || parked)) {
    const { uid: proxyUid } = proxy.metadata;
    const promise: Action = { type: "promise", member: next, proxyUid, requests: requestsFor(proxy, observed, next) };
    const refuse: Action = { type: "refuse", proxyUid, refusal, nodesVersion: holder.nodesVersion };
    return { actions: [promise, refuse, ...withdrawal], outcome: "Withdrawing" };
  }
  const requeueAt = now < deadline ? deadline : nextExpiry(observed, now);
  const reports =
    message === undefined && now < deadline
      ? []
      : report(proxy, observed, "Unschedulable", explain(withRefusal(allRefusals(ranking, observed, now), refusal)));
  // A toleration that is added while it waits may be all that it lacks.
  const actions = [...reports, ...forwards(proxy, holder, delegate)];
  return { actions, outcome: "Scheduling", ...(requeueAt === undefined ? {} : { requeueAt }) };
}

function decideUnheld(proxy: Stored<Pod>, observed: Observed, now: number): DelegationDecision {
  const { members, memory } = observed;
  const { uid: proxyUid } = proxy.metadata;
  const waiting = (reason: string, message: string, requeueAt?: number): DelegationDecision => ({
    actions: report(proxy, observed, reason, message),
    outcome: "Waiting",
    ...(requeueAt === undefined ? {} : { requeueAt }),
  });
  const create = (member: string, parked = false): DelegationDecision => ({
    actions: [
      {
        type: "create",
        member,
        proxyUid,
        delegate: delegateFor(proxy, observed, member),
        ...(parked ? { parked } : {}),
      },
    ],
    outcome: "Placing",
  });

  // It has run and gone before the host was told: bound to what it had, its end is told as of any other.
  for (const member of members) {
    const { departed } = member;
    if (departed === undefined || !isFor(departed, proxy)) continue;
    if (isTerminal(departed) || hasStarted(departed)) {
      return { actions: [bindTo(proxy, member, departed)], outcome: "Binding" };
    }
  }
  if (observed.invalid !== undefined) return waiting("InvalidPlacement", observed.invalid);
  const uncertain = members.find(({ name }) => name === memory.uncertain);
  if (uncertain !== undefined) {
    // The same create again gives a definite answer: it is made now, or it was made before.
    if (uncertain.reachable) return create(uncertain.name);
    const message = `${uncertain.name}: may have the pod and does not answer; no other member gets it before that is known`;
    return waiting("ClusterNotReady", message);
  }
  const unread = members.filter(
    ({ name, read, candidate }) => !read && mayHold(memory, name) && observed.allows(candidate) === undefined,
  );
  if (unread.length > 0) {
    const names = unread.map(({ name }) => name).join(", ");
    return waiting(
      "ClusterNotReady",
      memory.fresh
        ? `${names}: may have the pod from before its address changed, and has not answered since`
        : `${names}: may have the pod from before the controller started, and has not answered since`,
    );
  }

  const settling = members.filter(
    ({ name, candidate }) => mayHold(memory, name) && observed.allows(candidate) === undefined,
  );
  const settledAt = Math.max(...settling.map(({ reachableSince }) => reachableSince + SETTLES_MS));
  if (now < settledAt) return { actions: [], outcome: "Waiting", requeueAt: settledAt };

  const quietUntil = observed.follows === true ? createdAt(proxy) + FOLLOW_QUIETLY_MS : 0;
  if (now < quietUntil) return { actions: [], outcome: "Waiting", requeueAt: quietUntil };

  const needs = observed.needs?.();
  if (needs?.missing !== undefined) return waiting(needs.missing.reason, needs.missing.message);
  // That they have been read is an event of its own.
  if (needs?.read === false) return { actions: [], outcome: "Waiting" };

  if (observed.settling === true) return { actions: [], outcome: "Waiting" };
  const ranking = rankFor(proxy, observed, needs);
  const occupied = new Set(members.filter(({ delegate }) => delegate !== undefined).map(({ name }) => name));
  const free = (names: readonly string[]): string[] => openMembers(names, observed, now);
  // The promised room counts as used there, so that the member looks full for the pod it is kept for.
  const isLate = (name: string): boolean =>
    members.some((each) => each.name === name && each.candidate.overdue === true);
  const promised = free(ranking.full).filter((name) => name === memory.promised && !isLate(name));
  const fitting = [...promised, ...free(ranking.fitting)];
  const [awaited] = free(ranking.awaited === undefined ? [] : [ranking.awaited]);
  const awaitUntil = createdAt(proxy) + AWAIT_MS;
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
    return waiting("NotPlaced", explain(allRefusals(ranking, observed, now)), nextExpiry(observed, now));
  }
  if (occupied.has(best)) {
    const message = `${best}: still has the delegate of an earlier pod of that name`;
    return now < awaitUntil
      ? { actions: [], outcome: "Withdrawing", requeueAt: awaitUntil }
      : waiting("NotPlaced", message, nextExpiry(observed, now));
  }
  if (needs !== undefined && needs.in(best) !== "ready") {
    return { actions: [{ type: "prepare", member: best, proxyUid }], outcome: "Preparing" };
  }
  return create(best, fitting.length === 0);
}

/** The delegate as the member is to have it. A member that its overrides do not fit is not given the pod. */
export function delegateFor(proxy: Stored<Pod>, observed: Observed, member: string): Pod {
  const candidate = observed.members.find(({ name }) => name === member)?.candidate;
  const overridden = candidate === undefined ? undefined : observed.specIn?.(candidate);
  const spec = overridden !== undefined && "spec" in overridden ? overridden.spec : proxy.spec;
  return toDelegate(proxy, observed.host, observed.apiAccess(member), spec);
}

/** What `decidePlacing` decides by, for who explains it. */
export function placementOf(
  proxy: Stored<Pod>,
  observed: Observed,
  now: number,
): { readonly input: RankInput; readonly ranking: Ranking } {
  const input = rankInput(proxy, observed, observed.needs?.());
  const ranking = rank(input);
  return { input, ranking: { ...ranking, refusals: allRefusals(ranking, observed, now) } };
}

function rankFor(proxy: Stored<Pod>, observed: Observed, needs?: Needs): Ranking {
  return rank(rankInput(proxy, observed, needs));
}

function requestsFor(proxy: Stored<Pod>, { members, requestsIn }: Observed, member: string): Amounts {
  const candidate = members.find(({ name }) => name === member)?.candidate;
  return (candidate === undefined ? undefined : requestsIn?.(candidate)) ?? podRequests(proxy);
}

function rankInput(proxy: Stored<Pod>, observed: Observed, needs?: Needs): RankInput {
  const { members, allows, lacks, rules, requestsIn } = observed;
  const refused = ({ name }: Candidate): string | undefined => {
    const readiness = needs?.in(name);
    return typeof readiness === "object" ? readiness.refused : undefined;
  };
  const selection: Rule = {
    refusal: (candidate) => {
      const message = allows(candidate) ?? lacks?.(candidate) ?? refused(candidate);
      return message === undefined ? undefined : { reason: "NotSelected", message };
    },
  };
  return {
    requests: podRequests(proxy),
    ...(requestsIn === undefined ? {} : { requestsIn }),
    rules: [selection, ...(rules?.() ?? [])],
    candidates: members.map(({ candidate }) => candidate),
  };
}

/** Epoch ms. */
function createdAt({ metadata }: Stored<Pod>): number {
  return Date.parse(metadata.creationTimestamp ?? "") || 0;
}

/** Those members that no earlier attempt rules out for now. */
function openMembers(names: readonly string[], observed: Observed, now: number): string[] {
  return names.filter((name) => !ruledOut(observed, name, now));
}

/** Where the pod may wait when no member has room: the best that its API server lets it into. */
function parkable(ranking: Ranking, observed: Observed, now: number): string[] {
  const soft = (name: string): boolean => {
    const { refusal } = observed.memory.attempts.get(name) ?? {};
    const { reason } = refusal ?? observed.refusedBefore?.(name)?.refusal ?? {};
    return reason === "Unschedulable" || !ruledOut(observed, name, now);
  };
  return [...ranking.fitting, ...ranking.full].filter(soft);
}

function ruledOut(observed: Observed, name: string, now: number): boolean {
  const attempt = observed.memory.attempts.get(name);
  if (attempt?.refusal === undefined) return observed.refusedBefore?.(name) !== undefined;
  if (attempt.until === undefined || now >= attempt.until) return false;
  const member = observed.members.find((view) => view.name === name);
  return attempt.nodesVersion === member?.nodesVersion;
}

/** Placement's refusals and those of the members themselves, which say more about the same member. */
function allRefusals(ranking: Ranking, observed: Observed, now: number): Refusal[] {
  let refusals = [...ranking.refusals, ...unknownClusters(observed)];
  for (const [name, { refusal }] of observed.memory.attempts) {
    if (refusal !== undefined && ruledOut(observed, name, now)) refusals = withRefusal(refusals, refusal);
  }
  // The members that rules refuse have said nothing of this pod.
  const open = new Set([...ranking.fitting, ...ranking.full]);
  for (const { name } of observed.members) {
    if (!open.has(name) || observed.memory.attempts.get(name)?.refusal !== undefined) continue;
    const { refusal } = observed.refusedBefore?.(name) ?? {};
    if (refusal !== undefined) refusals = withRefusal(refusals, refusal);
  }
  return refusals;
}

/** A name that is written wrong would otherwise look like a choice. */
function unknownClusters({ named = [], members }: Observed): Refusal[] {
  return named
    .filter((name) => !members.some((member) => member.name === name))
    .map((cluster) => ({ cluster, reason: "UnknownCluster", message: "no Cluster of that name has joined" }));
}

function withRefusal(refusals: readonly Refusal[], refusal: Refusal): Refusal[] {
  return [...refusals.filter(({ cluster }) => cluster !== refusal.cluster), refusal];
}

function nextExpiry({ memory, members, refusedBefore }: Observed, now: number): number | undefined {
  const own = [...memory.attempts.values()].map(({ until }: Attempt) => until ?? 0);
  const others = members.map(({ name }) => refusedBefore?.(name)?.until ?? 0);
  const times = [...own, ...others].filter((until) => until > now);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Members that refused the pod before this one took it, where the author has not heard of it while the pod waited. */
function announce(proxy: Stored<Pod>, holder: MemberView, { memory }: Observed): Action[] {
  const untold = [...memory.attempts.values()]
    .flatMap(({ refusal }) => refusal ?? [])
    .filter(({ cluster, message }) => cluster !== holder.name && memory.reported?.includes(message) !== true);
  if (untold.length === 0) return [];
  const message = `${explain(untold)}; placed in ${holder.name}`;
  return [{ type: "announce", proxyUid: proxy.metadata.uid, reason: "NotTakenByMember", message }];
}

/** Tells the author why the pod waits; nothing when that was the last thing said. */
export function report(proxy: Stored<Pod>, { memory }: Observed, reason: string, message: string): Action[] {
  if (memory.reported === message) return [];
  return [{ type: "report", proxyUid: proxy.metadata.uid, reason, message }];
}
