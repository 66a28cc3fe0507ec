import { defined } from "../../../api/defined.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import {
  askedGrace,
  deletionAskedAt,
  deletionGrace,
  isBound,
  isDeleting,
  isTerminal,
} from "../../../pods/pod-state.ts";
import { mayHold } from "../../../scheduling/memory.ts";
import { type Action, decided, type Phase } from "../decision/decision.ts";
import {
  blocksDeletion,
  boundMember,
  hasOtherFinalizers,
  isAbandoned,
  isFor,
  isRecorded,
  isSurplus,
  surplusAwaitedUntil,
} from "../decision/delegates.ts";
import { feedback, notReadyWrite } from "../decision/feedback.ts";
import { type MemberView, type PodView, wallTime } from "../decision/view.ts";
import { writeAgainAt } from "../decision/write-purpose.ts";

// The kubelet's own minimum (calculateEffectiveGracePeriod in kubelet/pod_workers.go): with less, the pod goes before its end is shown.
const SHORTEST_GRACE_SECONDS = 1;
// A member whose kubelet has reported nothing by then is not waited for.
const REPORTED_WITHIN_MS = 10_000;

/** The proxy is being deleted: its delegate is deleted with the caller's grace period, and the proxy waits until that has gone. */
export const ending: Phase = (view, now) => {
  const { proxy, members, memory } = view;
  const holding = members.filter((member) => mayHaveIt(member, view, now) && !isAbandoned(member, view));
  if (holding.length === 0) return undefined;
  const wall = wallTime(view, now);
  const actions = holding.flatMap((member) => endIn(member, view, now));
  const leftMs = (deletionAskedAt(proxy) ?? wall) + REPORTED_WITHIN_MS - wall;
  return decided(
    "Ending",
    actions,
    isAwaited(proxy, wall) ? now + leftMs : undefined,
    holding.some((member) => isSurplus(member, proxy)) ? surplusAwaitedUntil(view, now) : undefined,
    writeAgainAt(memory, actions, now),
  );
};

function mayHaveIt(member: MemberView, view: PodView, now: number): boolean {
  const { proxy, memory } = view;
  if (blocksDeletion(member, view, now) || memory.uncertain === member.name) return true;
  if (member.read) return false;
  if (isBound(proxy) && member.name === boundMember(view)?.name) return true;
  return mayHold(memory, member.name) && member.excluded === undefined;
}

function endIn(member: MemberView, view: PodView, now: number): Action[] {
  const { proxy, memory } = view;
  const { name, delegate } = member;
  if (!member.reachable || !member.read) {
    return name === boundMember(view)?.name ? notReadyWrite(view, member, now) : [];
  }
  if (delegate !== undefined && isFor(delegate, proxy)) {
    return isSurplus(member, proxy) ? [] : deleteDelegate(name, delegate, proxy, wallTime(view, now));
  }
  if (memory.uncertain !== name) return [];
  return [{ type: "confirmCreated", member: name, proxyUid: proxy.metadata.uid }];
}

function deleteDelegate(member: string, delegate: Stored<Pod>, proxy: Stored<Pod>, wall: number): Action[] {
  const bound = isBound(proxy);
  // The API server deletes an unbound pod with grace 0 whatever was asked; the delegate may run, and keeps its own.
  const graceSeconds = bound ? graceOf(proxy, delegate, wall) : undefined;
  const { uid } = delegate.metadata;
  const isShorter = graceSeconds !== undefined && graceSeconds < (deletionGrace(delegate) ?? 0);
  const deletes: Action[] =
    isDeleting(delegate) && !isShorter ? [] : [{ type: "delete", member, uid, ...defined({ graceSeconds }) }];
  return bound && isRecorded(delegate, proxy) ? [...deletes, ...feedback(proxy, delegate)] : deletes;
}

/** Returns the grace that the caller asked for; undefined where that was the proxy's own and an override gives the delegate another. */
function graceOf(proxy: Stored<Pod>, delegate: Stored<Pod>, wall: number): number | undefined {
  const asked = askedGrace(proxy);
  if (isAwaited(proxy, wall) && isRecorded(delegate, proxy) && !isTerminal(delegate)) return SHORTEST_GRACE_SECONDS;
  const own = proxy.spec?.terminationGracePeriodSeconds;
  return asked === own && delegate.spec?.terminationGracePeriodSeconds !== own ? undefined : asked;
}

/** Reports whether other finalizers' owners are to see how the containers end, though the deletion is by force. */
function isAwaited(proxy: Stored<Pod>, wall: number): boolean {
  const askedAt = deletionAskedAt(proxy);
  if (askedGrace(proxy) !== 0 || isTerminal(proxy) || !hasOtherFinalizers(proxy) || askedAt === undefined) return false;
  // Clocks differ. Where they differ by more, nothing is waited for.
  return Math.abs(wall - askedAt) < REPORTED_WITHIN_MS;
}
