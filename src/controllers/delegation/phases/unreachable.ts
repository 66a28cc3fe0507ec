import { virtualNodeName } from "../../../api/keys.ts";
import { because } from "../../../placement/needs.ts";
import { isBound, unschedulableMessage } from "../../../pods/pod-state.ts";
import { type Action, type DelegationDecision, decided, type Phase } from "../decision/decision.ts";
import { bindTo, boundMember, holderOf } from "../decision/delegates.ts";
import { notReadyWrite } from "../decision/feedback.ts";
import { waitBecause } from "../decision/report.ts";
import type { MemberView, PodView } from "../decision/view.ts";
import { writeAgainAt } from "../decision/write-purpose.ts";

/** The member of a bound proxy does not answer, or has still to be read: what runs there is not known. */
export const unreachable: Phase = (view, now) => {
  const member = boundMember(view);
  if (member?.reachable === true && member.read) return undefined;
  const actions = notReadyWrite(view, member, now);
  return decided("Unreachable", actions, writeAgainAt(view.memory, actions, now));
};

/** Binds an unbound proxy whose delegate is in a lost member. */
export const lostHolder: Phase = (view, now) => {
  const holder = holderOf(view);
  return holder === undefined || holder.reachable ? undefined : bindToLostNode(holder, "has", view, now);
};

/** Binds the proxy, which is then a pod on an unreachable node: Kubernetes evicts it and its controller replaces it. */
export function bindToLostNode(
  member: MemberView,
  has: "has" | "may have",
  view: PodView,
  now: number,
): DelegationDecision {
  const { name, delegate, notReady = false } = member;
  const { proxy } = view;
  const { uid: proxyUid } = proxy.metadata;
  const what = `${has} the pod and does not answer`;
  // A short loss must not confine to the member a pod that has no node in it, since another member may get room.
  const isUnscheduled = delegate !== undefined && unschedulableMessage(delegate) !== undefined;
  // When most members are lost, their nodes stay Ready and no pod is evicted.
  if (isUnscheduled || !notReady) {
    const message = `${what}; no other member gets it before that is known`;
    const reason = "ClusterNotReady";
    return waitBecause(because(reason, [{ cluster: name, reason, message }]), view, now, { outcome: "Unreachable" });
  }
  const message = `${name}: ${what}; it is bound to the lost node ${virtualNodeName(name)}, and leaves it when it does not tolerate that any longer`;
  const bind: Action =
    delegate !== undefined && isBound(delegate)
      ? bindTo(proxy, name, delegate)
      : { type: "bind", member: name, proxyUid };
  return decided("Binding", [bind, { type: "announce", proxyUid, reason: "BoundToLostMember", message }]);
}
