import { CREATE_ENDS_MS } from "../../../kube/request-ends.ts";
import { isBound } from "../../../pods/pod-state.ts";
import { type DelegationDecision, decided, type Phase } from "../decision/decision.ts";
import {
  boundMember,
  endsUnstarted,
  holderOf,
  holdersOf,
  isFor,
  surplusHolders,
  withdraw,
  withdrawWaiting,
} from "../decision/delegates.ts";
import type { PodView } from "../decision/view.ts";

/** The delegate that waits for a node goes. Of two that have nodes, the Binding decides which stays. */
export const withdrawDuplicates: Phase = (view) => {
  const holder = holderOf(view);
  const duplicates = holdersOf(view).filter(
    ({ delegate }) => !isBound(delegate) && delegate.metadata.uid !== holder?.delegate.metadata.uid,
  );
  return duplicates.length > 0 ? decided("Withdrawing", duplicates.flatMap(withdrawWaiting)) : undefined;
};

/** The delegate is deleted before it had a node: the next member gets the pod once it has gone. */
export const awaitWithdrawal: Phase = (view) => {
  const holder = holderOf(view);
  if (holder === undefined || !holder.reachable || !endsUnstarted(holder.delegate)) return undefined;
  return decided("Withdrawing", []);
};

/** Another member may have got the delegate after this one: whether it has is known before the Binding decides which stays. */
export const confirmOther: Phase = (view, now) => {
  const { uncertain } = view.memory;
  const other = view.members.find(({ name, reachable }) => name === uncertain && reachable);
  if (other === undefined || isFor(other.delegate, view.proxy)) return undefined;
  return confirm(other.name, view, now);
};

/** An earlier leader's Binding was done late. The proxy's member gets the delegate once the other one has gone. */
export const leaveOthers: Phase = (view, now) => {
  const { proxy, memory } = view;
  const member = boundMember(view);
  const { uncertain } = memory;
  if (isFor(member?.delegate, proxy) || uncertain === member?.name) return undefined;
  const others = surplusHolders(view);
  if (others.length > 0) return decided("Withdrawing", others.flatMap(withdraw));
  return uncertain === undefined ? undefined : confirm(uncertain, view, now);
};

function confirm(member: string, { proxy, memory }: PodView, now: number): DelegationDecision {
  const over = memory.uncertainCreate === undefined ? now : memory.uncertainCreate.lastAt + CREATE_ENDS_MS;
  if (now < over) return decided("Withdrawing", [], over);
  return decided("Withdrawing", [{ type: "confirmCreated", member, proxyUid: proxy.metadata.uid }]);
}
