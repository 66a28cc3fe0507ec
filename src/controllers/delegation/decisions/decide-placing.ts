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
  const holders = observed.members.filter(({ delegate }) => isFor(delegate, proxy));
  const stays = ({ candidate }: MemberView): boolean => candidate.closed !== BEING_REMOVED;
  const holder =
    holders.find(({ delegate }) => delegate !== undefined && isBound(delegate)) ?? holders.find(stays) ?? holders[0];
  if (holder?.delegate !== undefined) {
    // A cluster that has joined under two names shows one delegate twice.
    const surplus = holders.filter(({ delegate }) => delegate?.metadata.uid !== holder.delegate?.metadata.uid);
    if (surplus.length > 0) return { actions: surplus.flatMap(withdrawWaiting), outcome: "Withdrawing" };
    return decideHeld(proxy, holder, holder.delegate, observed, now);
  }
  return decideUnheld(proxy, observed, now);
}
