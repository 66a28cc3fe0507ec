import { virtualNodeName } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { isBound, unschedulableMessage } from "../../../pods/phase.ts";
import { bindTo } from "./delegates.ts";
import type { DelegationDecision, MemberView, Observed } from "./model.ts";
import { report } from "./report.ts";

/**
 * A proxy without a node that a member has, or `may` have, which does not answer: no other member gets it. Once the member's
 * node says that it is lost, the proxy is bound to that node. From then on it is a pod of a lost node like any other: the host's
 * node lifecycle controller evicts it, and its own controller replaces it.
 */
export function decideLost(
  proxy: Stored<Pod>,
  member: MemberView,
  observed: Observed,
  { has, now }: { readonly has: "has" | "may have"; readonly now: number },
): DelegationDecision {
  const { name, delegate } = member;
  const { uid: proxyUid } = proxy.metadata;
  const what = `${name}: ${has} the pod and does not answer`;
  // A short loss would confine a pod without a node there to the member, although others may have room.
  const isParked = delegate !== undefined && unschedulableMessage(delegate) !== undefined;
  // The nodes of lost members stay Ready when most are lost: nobody is evicted then.
  if (isParked || observed.unheard?.(name) !== true) {
    const message = `${what}; no other member gets it before that is known`;
    return { actions: report(proxy, observed, { reason: "ClusterNotReady", message, now }), outcome: "Unreachable" };
  }
  const isKnown = delegate !== undefined && isBound(delegate);
  const message = `${what}; it is bound to the lost node ${virtualNodeName(name)}, and leaves it when it does not tolerate that any longer`;
  return {
    actions: [
      isKnown ? bindTo(proxy, member, delegate) : { type: "bind", member: name, proxyUid },
      { type: "announce", proxyUid, reason: "BoundToLostMember", message },
    ],
    outcome: "Binding",
  };
}
