import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { BEING_REMOVED } from "../../../placement/member-candidate.ts";
import { isBound, isGated } from "../../../pods/phase.ts";
import { decideHeld } from "./decide-held.ts";
import { decideUnheld } from "./decide-unheld.ts";
import { isFor, withdrawWaiting } from "./delegates.ts";
import type { DelegationDecision, MemberView, Observed } from "./model.ts";

/** A proxy without a node: give it to one member, let that member's scheduler answer, then bind it. */
export function decidePlacing(proxy: Stored<Pod>, observed: Observed, now: number): DelegationDecision {
  if (isGated(proxy)) return { actions: [], outcome: "Gated" };
  const { binding } = observed.memory;
  // The Binding may be done late, and must not find the delegate in another member.
  if (binding !== undefined && observed.members.some(({ name }) => name === binding)) {
    return { actions: [{ type: "bind", member: binding, proxyUid: proxy.metadata.uid }], outcome: "Binding" };
  }
  const holders = observed.members.filter(({ delegate }) => isFor(delegate, proxy));
  const stays = ({ candidate }: MemberView): boolean => candidate.closed !== BEING_REMOVED;
  const holder =
    holders.find((member) => member.reachable && hasNode(member)) ??
    holders.find(hasNode) ??
    holders.find(stays) ??
    holders[0];
  if (holder?.delegate !== undefined) {
    // A cluster that has joined under two names shows one delegate twice. One that has a node goes when the proxy has one: it may be the very
    // one to which the host has bound the proxy, which the watch has yet to show. The Binding settles which stays.
    const surplus = holders.filter(
      (member) => !hasNode(member) && member.delegate?.metadata.uid !== holder.delegate?.metadata.uid,
    );
    if (surplus.length > 0) return { actions: surplus.flatMap(withdrawWaiting), outcome: "Withdrawing" };
    return decideHeld(proxy, holder, holder.delegate, observed, now);
  }
  return decideUnheld(proxy, observed, now);
}

function hasNode({ delegate }: MemberView): boolean {
  return delegate !== undefined && isBound(delegate);
}
