import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { statusFrom } from "../../../pods/feedback.ts";
import { lostPodStatus } from "../../../pods/lost-status.ts";
import { deletionGrace, isBound, isDeleting, isTerminal } from "../../../pods/pod-state.ts";
import { type Action, decided, type Phase } from "../decision/decision.ts";
import {
  awaitsDelegate,
  blocksDeletion,
  boundMember,
  type DelegateHolder,
  hasFinalizer,
  hasOtherFinalizers,
  holdersOf,
  isAbandoned,
  isFor,
  isForced,
  isRecorded,
  isSurplus,
  withdraw,
} from "../decision/delegates.ts";
import { finalStatusWrite, notReadyWrite, statusWrite } from "../decision/feedback.ts";
import { type PodView, wallTime } from "../decision/view.ts";
import { writeAgainAt } from "../decision/write-purpose.ts";
import { confirmGoneIn } from "./vanished.ts";

/** Legation's finalizer does not hold the proxy that is being deleted. As the kubelet does, what still runs of it is deleted. */
export const released: Phase = (view, now) => {
  const { proxy, members } = view;
  if (hasFinalizer(proxy)) return undefined;
  if (!isBound(proxy) || (deletionGrace(proxy) ?? 0) === 0) {
    return decided("Released", members.filter((member) => blocksDeletion(member, view, now)).flatMap(withdraw));
  }
  // Within its grace a bound pod waits for its kubelet to finish it. One that was just bound without a delegate never had one.
  return awaitsDelegate(proxy)
    ? decided("Released", [{ type: "deleteProxy", proxyUid: proxy.metadata.uid }])
    : undefined;
};

/** A forced deletion waits for no member: the proxy goes, and then its delegates. Those that remain are swept. */
export const releaseForced: Phase = (view, now) => {
  const { proxy } = view;
  if (!isForced(proxy) || !hasFinalizer(proxy)) return undefined;
  const member = boundMember(view);
  // Without its marks, only the record leads to the delegate, so that is asked for first.
  const isShown = member === undefined || isFor(member.delegate, proxy) || isAbandoned(member, view);
  if (!isShown && confirmGoneIn(member, view, now) !== undefined) return undefined;
  const holders = holdersOf(view).filter((holder) => !isSurplus(holder, proxy));
  // Any deletion of an ended pod has grace 0.
  if (isTerminal(proxy) && holders.some(({ delegate }) => !isTerminal(delegate))) return undefined;
  const removals = holders.flatMap((holder) => endAtOnce(holder));
  return decided("Released", [{ type: "removeFinalizer", proxyUid: proxy.metadata.uid }, ...removals]);
};

function endAtOnce({ name, reachable, delegate }: DelegateHolder): Action[] {
  const { uid } = delegate.metadata;
  const isEnding = isDeleting(delegate) && deletionGrace(delegate) === 0;
  return !reachable || isEnding ? [] : [{ type: "delete", member: name, uid, graceSeconds: 0, forced: true }];
}

/** A delegate that lost its marks would never be found once its proxy is gone: its member is asked first. */
export const confirmEnd: Phase = (view, now) => {
  const member = boundMember(view);
  if (member === undefined || isAbandoned(member, view)) return undefined;
  const looking = confirmGoneIn(member, view, now);
  if (looking === undefined || (member.reachable && member.read)) return looking;
  const actions = notReadyWrite(view, member, now);
  return decided("Ending", actions, writeAgainAt(view.memory, actions, now));
};

/** No member has the delegate any more: the last status is shown where it can be seen, and the proxy is let go. */
export const release: Phase = (view, now) => {
  const { proxy } = view;
  const { uid: proxyUid } = proxy.metadata;
  const isWaitedFor = (deletionGrace(proxy) ?? 0) > 0;
  const isSeen = isBound(proxy) && !isTerminal(proxy) && (isWaitedFor || hasOtherFinalizers(proxy));
  const actions: Action[] = [
    ...(isSeen ? lastStatus(view, now) : []),
    ...(isWaitedFor ? [{ type: "deleteProxy", proxyUid } as const] : []),
    ...(hasFinalizer(proxy) ? [{ type: "removeFinalizer", proxyUid } as const] : []),
  ];
  return decided("Released", actions, writeAgainAt(view.memory, actions, now));
};

function lastStatus(view: PodView, now: number): Action[] {
  const { proxy } = view;
  const { departed, delegate } = boundMember(view) ?? {};
  // A delegate that ended in a member which does not answer is still shown.
  const last = [departed, delegate].find((pod) => pod !== undefined && isRecorded(pod, proxy));
  const shown = last === undefined ? undefined : statusFrom(proxy, last, { gone: last === departed });
  if (shown?.phase === "Succeeded" || shown?.phase === "Failed") return statusWrite(proxy, shown);
  const base: Stored<Pod> = shown === undefined ? proxy : { ...proxy, status: shown };
  const message = "The pod was deleted before its final status was seen";
  return finalStatusWrite(proxy, lostPodStatus(base, { message, now: wallTime(view, now) }));
}
