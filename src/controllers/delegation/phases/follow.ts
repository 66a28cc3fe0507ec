import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { statusFrom, withoutReadiness } from "../../../pods/feedback.ts";
import { deletionGrace, isDeleting, isReplaced, isTerminal } from "../../../pods/pod-state.ts";
import { type Action, decided, type Phase } from "../decision/decision.ts";
import { boundMember, isFor, isRecorded, withdraw } from "../decision/delegates.ts";
import { feedback, statusWrite } from "../decision/feedback.ts";
import { forwards, refusedResize } from "../decision/forwarding.ts";
import { type PodView, wallTime } from "../decision/view.ts";
import { writeAgainAt } from "../decision/write-purpose.ts";

/** The proxy and its recorded delegate are kept alike: status comes back, changes go to the member. */
export const follow: Phase = (view, now) => {
  const { proxy } = view;
  const member = boundMember(view);
  const delegate = member?.delegate;
  if (member === undefined || delegate === undefined || !isRecorded(delegate, proxy) || isTerminal(proxy))
    return undefined;
  const actions =
    isDeleting(delegate) && !isTerminal(delegate)
      ? followDeletion(delegate, view, now)
      : keepAlike(member.name, delegate, view, now);
  return decided("Running", actions, writeAgainAt(view.memory, actions, now));
};

/** The proxy has ended: as the kubelet does, a delegate that still runs is deleted. */
export const ended: Phase = (view, now) => {
  const { proxy, memory } = view;
  const member = boundMember(view);
  if (!isTerminal(proxy) || member === undefined) return undefined;
  const { delegate } = member;
  if (delegate === undefined || !isFor(delegate, proxy)) return decided("Finished", [], writeAgainAt(memory, [], now));
  const actions = isRecorded(delegate, proxy) && isTerminal(delegate) ? feedback(proxy, delegate) : withdraw(member);
  return decided("Finished", actions, writeAgainAt(memory, actions, now));
};

/** Feedback comes first: a member that takes no write must not keep the host from hearing what runs in it. */
function keepAlike(member: string, delegate: Stored<Pod>, view: PodView, now: number): Action[] {
  const { proxy } = view;
  const refused = isTerminal(delegate) ? undefined : refusedResize(proxy, delegate, view);
  return [...feedback(proxy, delegate, refused), ...forwards(proxy, member, delegate, view, now)];
}

/** The delegate is being deleted in its member. A proxy that its controller replaces is deleted at once, any other shows it. */
function followDeletion(delegate: Stored<Pod>, view: PodView, now: number): Action[] {
  const { proxy } = view;
  if (isReplaced(proxy)) {
    // Grace 0 would delete the proxy at once, while containers still have their time.
    const graceSeconds = Math.max(1, deletionGrace(delegate) ?? 1);
    return [...feedback(proxy, delegate), { type: "evict", proxyUid: proxy.metadata.uid, graceSeconds }];
  }
  // A pod that is being deleted is no endpoint and no healthy replica, which the proxy's readiness has to say.
  const wanted = statusFrom(proxy, delegate);
  return wanted === undefined ? [] : statusWrite(proxy, withoutReadiness(proxy, wanted, wallTime(view, now)));
}
