import { because, isPrepared, whyUnprepared } from "../../../placement/needs.ts";
import { controllerOf, everRan } from "../../../pods/pod-state.ts";
import { UNTOLD_MS } from "../../../runtime/requeue.ts";
import { type DelegationDecision, decided, type Phase } from "../decision/decision.ts";
import { boundMember, createIn, lastRecorded, surplusHolders } from "../decision/delegates.ts";
import { withoutConditionsOf } from "../decision/feedback.ts";
import { waitBecause } from "../decision/report.ts";
import { type MemberView, type PodView, refusalOfOwnMember, unknownPlacement } from "../decision/view.ts";
import { writeAgainAt } from "../decision/write-purpose.ts";

/** A proxy that was bound without a delegate gets one in the member that it is bound to, and in no other. */
export const createBound: Phase = (view, now) => {
  const member = boundMember(view);
  return member === undefined ? undefined : createInOwn(member, view, now);
};

/** The delegate went before it ran, and the pod has no controller that would replace it. */
export const recreate: Phase = (view, now) => {
  const { proxy } = view;
  const member = boundMember(view);
  if (member === undefined || member.delegate !== undefined) return undefined;
  if (refusalOfOwnMember(member, view) !== undefined) return undefined;
  const last = lastRecorded(view);
  const started = everRan(proxy) || (last !== undefined && everRan(last));
  if (started || controllerOf(proxy) !== undefined) return undefined;
  // A delegate elsewhere may still run, and must have ended before the proxy gets another.
  if (surplusHolders(view).length > 0) return decided("Withdrawing", [], writeAgainAt(view.memory, [], now));
  return createInOwn(member, view, now);
};

function createInOwn(member: MemberView, view: PodView, now: number): DelegationDecision {
  const { name, preparation, misfit, departed } = member;
  const { proxy, needs, memory } = view;
  const soon = { requeueAt: now + UNTOLD_MS };
  const unknown = unknownPlacement(view);
  if (unknown !== undefined) return waitBecause(unknown, view, now, soon);
  if (!isPrepared(preparation)) {
    const why = whyUnprepared(needs, member);
    if (why === undefined) return decided("Preparing", [], soon.requeueAt);
    return waitBecause(why, view, now, { ...soon, outcome: "Preparing" });
  }
  if (misfit !== undefined) {
    const reason = "RefusedByMember";
    return waitBecause(because(reason, [{ cluster: name, reason, message: misfit }]), view, now, soon);
  }
  const { refusal, until = 0 } = memory.attempts[name] ?? {};
  if (refusal !== undefined && now < until) {
    return waitBecause(because(refusal.reason, [refusal]), view, now, { requeueAt: until });
  }
  const actions = [...withoutConditionsOf(proxy, departed), createIn(proxy, name)];
  return decided("Placing", actions, writeAgainAt(memory, actions, now));
}
