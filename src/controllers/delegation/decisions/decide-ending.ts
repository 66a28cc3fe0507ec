import { DELEGATE_FINALIZER } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { statusFrom } from "../../../pods/feedback.ts";
import { lostStatus } from "../../../pods/lost-status.ts";
import { askedGrace, deletionAskedAt, deletionGrace, isBound, isDeleting, isTerminal } from "../../../pods/phase.ts";
import { memberOf } from "../../../pods/proxy.ts";
import { awaitsDelegate, holdsFinalizer } from "./decide-awaited.ts";
import { decideLooking } from "./decide-looking.ts";
import { boundMember, feedback, isRecorded, statusWrite, unheardOf, verdict } from "./decide-running.ts";
import { isFor, withdraw } from "./delegates.ts";
import { type Action, type DelegationDecision, type MemberView, mayHold, type Observed } from "./model.ts";

// The kubelet's own minimum (calculateEffectiveGracePeriod in kubelet/pod_workers.go). A pod that is deleted with less is gone before it is told
// how its containers ended.
const SHORTEST_GRACE_SECONDS = 1;
// A member whose kubelet has told nothing by then is not waited for.
const TOLD_WITHIN_MS = 10_000;

/** A proxy whose deletion was asked for: end its delegate, bring the last status back, then let the proxy go. */
export function decideEnding(
  proxy: Stored<Pod>,
  observed: Observed,
  now: number,
  wall: number = now,
): DelegationDecision {
  const bound = isBound(proxy);
  if (!holdsFinalizer(proxy)) {
    const { uid: proxyUid } = proxy.metadata;
    if (!bound || (deletionGrace(proxy) ?? 0) === 0)
      return { actions: leftovers(proxy, observed), outcome: "Released" };
    // Within its grace it waits for its kubelet's word, which is that the delegate is gone; one that had just overflowed has
    // never had any.
    if (awaitsDelegate(proxy)) return { actions: [{ type: "finish", proxyUid }], outcome: "Released" };
  }
  const actions: Action[] = [];
  let waiting = false;
  for (const member of observed.members) {
    if (!concerns(member, proxy, observed)) continue;
    if (mayBeAbandoned(member, proxy, observed)) continue;
    waiting = true;
    if (!member.reachable || !member.read) {
      if (member === boundMember(proxy, observed)) actions.push(...unheardOf(proxy, member, observed, wall));
      continue;
    }
    if (member.delegate !== undefined && isFor(member.delegate, proxy)) {
      actions.push(...end(proxy, member, member.delegate, { bound, wall }));
    } else if (observed.memory.uncertain === member.name) {
      actions.push({ type: "resolve", member: member.name, proxyUid: proxy.metadata.uid });
    }
  }
  if (waiting) {
    const leftMs = (deletionAskedAt(proxy) ?? wall) + TOLD_WITHIN_MS - wall;
    return { actions, outcome: "Ending", ...(isAwaited(proxy, wall) ? { requeueAt: now + leftMs } : {}) };
  }
  return lookFirst(proxy, observed, now, wall) ?? { actions: farewell(proxy, observed, wall), outcome: "Released" };
}

/** Nobody would ever find a delegate without its marks once its proxy is gone. */
function lookFirst(proxy: Stored<Pod>, observed: Observed, now: number, wall: number): DelegationDecision | undefined {
  const member = boundMember(proxy, observed);
  if (member === undefined || mayBeAbandoned(member, proxy, observed)) return undefined;
  const looking = decideLooking(proxy, member, observed, now);
  if (looking === undefined || (member.reachable && member.read)) return looking;
  return { actions: unheardOf(proxy, member, observed, wall), outcome: "Ending" };
}

/** What still runs of a proxy that nobody waits for and that others hold: as kubelet, which ends every pod that is being deleted. */
function leftovers(proxy: Stored<Pod>, observed: Observed): Action[] {
  return observed.members.filter((member) => holdsUp(member, proxy)).flatMap(withdraw);
}

/**
 * True when the end of the proxy is to wait for the member's delegate. Any member can say that it has one of a bound proxy: it
 * has to be that proxy's own member, or the delegate that is on record.
 */
export function holdsUp({ name, delegate }: MemberView, proxy: Stored<Pod>): boolean {
  if (delegate === undefined || !isFor(delegate, proxy)) return false;
  const own = memberOf(proxy);
  return own === undefined || own === name || isRecorded(delegate, proxy);
}

/** True while the member has the proxy's delegate, or may have it. */
function concerns(member: MemberView, proxy: Stored<Pod>, observed: Observed): boolean {
  if (holdsUp(member, proxy)) return true;
  if (observed.memory.uncertain === member.name) return true;
  if (member.read) return false;
  return isBound(proxy)
    ? member === boundMember(proxy, observed)
    : mayHold(observed.memory, member.name) && observed.excludes(member.candidate) === undefined;
}

/**
 * A member that does not answer is waited for, as a node is: its containers may run. Kubernetes does not wait either
 * when the node was declared out of service or the pod was deleted by force; the sweep ends what was left there.
 */
function mayBeAbandoned(member: MemberView, proxy: Stored<Pod>, observed: Observed): boolean {
  if (member.reachable && member.read) return false;
  if (observed.outOfService(member.name)) return true;
  if (member.delegate !== undefined && isTerminal(member.delegate)) return true;
  return isBound(proxy) && askedGrace(proxy) === 0;
}

function end(
  proxy: Stored<Pod>,
  member: MemberView,
  delegate: Stored<Pod>,
  { bound, wall }: { readonly bound: boolean; readonly wall: number },
): Action[] {
  // The API server deletes an unbound pod with grace 0 whatever was asked; the delegate may run and keeps its own.
  const graceSeconds = bound ? graceOf(proxy, delegate, wall) : undefined;
  const { uid } = delegate.metadata;
  const asked = isDeleting(delegate);
  const shorter = graceSeconds !== undefined && graceSeconds < (deletionGrace(delegate) ?? 0);
  const deletes: Action[] =
    asked && !shorter
      ? []
      : [{ type: "delete", member: member.name, uid, ...(graceSeconds === undefined ? {} : { graceSeconds }) }];
  return bound && isRecorded(delegate, proxy) ? [...deletes, ...feedback(proxy, delegate)] : deletes;
}

/** What the caller asked for; undefined when that was nothing but the proxy's own, and the delegate has another by an override. */
function graceOf(proxy: Stored<Pod>, delegate: Stored<Pod>, wall: number): number | undefined {
  const asked = askedGrace(proxy);
  if (isAwaited(proxy, wall) && isRecorded(delegate, proxy) && !isTerminal(delegate)) return SHORTEST_GRACE_SECONDS;
  const own = proxy.spec?.terminationGracePeriodSeconds;
  return asked === own && delegate.spec?.terminationGracePeriodSeconds !== own ? undefined : asked;
}

/** Reports whether a proxy that was deleted by force is still to show how its containers end: others hold it, and see that. */
function isAwaited(proxy: Stored<Pod>, wall: number): boolean {
  const askedAt = deletionAskedAt(proxy);
  if (askedGrace(proxy) !== 0 || isTerminal(proxy) || !isHeldByOthers(proxy) || askedAt === undefined) return false;
  // Clocks differ; where they do so by more, nothing is waited for.
  return Math.abs(wall - askedAt) < TOLD_WITHIN_MS;
}

function isHeldByOthers({ metadata: { finalizers = [] } }: Stored<Pod>): boolean {
  return finalizers.some((name) => name !== DELEGATE_FINALIZER);
}

/** The last writes of a proxy's life: final status where somebody can still see it, grace 0, finalizer. */
function farewell(proxy: Stored<Pod>, observed: Observed, wall: number): Action[] {
  const { uid: proxyUid } = proxy.metadata;
  const actions: Action[] = [];
  const isWaitedFor = (deletionGrace(proxy) ?? 0) > 0;
  if (isBound(proxy) && !isTerminal(proxy) && (isWaitedFor || isHeldByOthers(proxy)))
    actions.push(...lastStatus(proxy, observed, wall));
  if (isWaitedFor) actions.push({ type: "finish", proxyUid });
  if (holdsFinalizer(proxy)) actions.push({ type: "release", proxyUid });
  return actions;
}

function lastStatus(proxy: Stored<Pod>, observed: Observed, wall: number): Action[] {
  const { departed, delegate } = boundMember(proxy, observed) ?? {};
  // One that has ended in a member which does not answer is still there.
  const last = [departed, delegate].find((pod) => pod !== undefined && isRecorded(pod, proxy));
  const shown = last === undefined ? undefined : statusFrom(proxy, last, { gone: last === departed });
  if (shown?.phase === "Succeeded" || shown?.phase === "Failed") return statusWrite(proxy, shown);
  const base = shown === undefined ? proxy : { ...proxy, status: shown };
  return verdict(
    proxy,
    lostStatus(base, { message: "The pod was deleted before its final status was seen", now: wall }),
  );
}
