import type { Refusal } from "../../../placement/candidate.ts";
import { NO_VIRTUAL_NODE } from "../../../placement/member-candidate.ts";
import { because } from "../../../placement/needs.ts";
import { explain } from "../../../placement/rank.ts";
import { isBound, isTerminal } from "../../../pods/pod-state.ts";
import { dedupeKey } from "../../../runtime/told.ts";
import { type Action, decided, type Phase } from "../decision/decision.ts";
import { bindTo, holderOf, ranUntold } from "../decision/delegates.ts";
import { waitBecause } from "../decision/report.ts";
import type { PodView } from "../decision/view.ts";

/** The member's scheduler has bound the delegate: the proxy is bound to the member's virtual node. */
export const bind: Phase = (view, now) => {
  const holder = holderOf(view);
  if (holder === undefined || !(isBound(holder.delegate) || isTerminal(holder.delegate))) return undefined;
  if (holder.lacksNode === true) {
    return waitBecause(because(NO_VIRTUAL_NODE.reason, [{ cluster: holder.name, ...NO_VIRTUAL_NODE }]), view, now);
  }
  return decided("Binding", [bindTo(view.proxy, holder.name, holder.delegate), ...announce(holder.name, view)]);
};

/** The Binding that was sent may have been done, or may be done late: it is sent again as it was, and no other member gets the pod. */
export const repeatBinding: Phase = ({ proxy, memory: { binding }, members }) => {
  if (binding === undefined || !members.some(({ name }) => name === binding.member)) return undefined;
  return decided("Binding", [{ type: "bind", proxyUid: proxy.metadata.uid, ...binding }]);
};

/** The delegate ran and went before the host heard of it: bound to the member that had it, the pod ends like any other. */
export const bindDeparted: Phase = ({ proxy, members }) => {
  for (const member of members) {
    const departed = ranUntold(member, proxy);
    if (departed !== undefined) return decided("Binding", [bindTo(proxy, member.name, departed)]);
  }
  return undefined;
};

/** Tells the author which members refused the pod before this one took it, unless a report has. */
function announce(holder: string, { proxy, memory: { attempts, reported } }: PodView): Action[] {
  const refusals: Refusal[] = Object.values(attempts).flatMap(({ refusal }) => refusal ?? []);
  // However long ago: the proxy's condition has shown it since.
  const isReported = (one: Refusal): boolean =>
    reported?.refusals?.some((other) => other.cluster === one.cluster && dedupeKey(other) === dedupeKey(one)) === true;
  const unreported = refusals.filter((refusal) => refusal.cluster !== holder && !isReported(refusal));
  if (unreported.length === 0) return [];
  const message = `${explain(unreported)}; placed in ${holder}`;
  return [{ type: "announce", proxyUid: proxy.metadata.uid, reason: "NotTakenByMember", message }];
}
