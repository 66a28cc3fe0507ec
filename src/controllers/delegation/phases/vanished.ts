import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { statusFrom } from "../../../pods/feedback.ts";
import { lostStatus } from "../../../pods/lost-status.ts";
import { controllerOf, hasStarted, isTerminal } from "../../../pods/pod-state.ts";
import { type DelegationDecision, decided, type Phase } from "../model/decision.ts";
import { boundMember, createIn, isRecorded, surplusHolders } from "../model/delegates.ts";
import { feedback, verdict, withoutConditionsOf } from "../model/feedback.ts";
import { writeAgainAt } from "../model/futile-writes.ts";
import { isReady, whyUnprepared } from "../model/needs.ts";
import { waitFor } from "../model/report.ts";
import { type MemberView, type PodView, unknownPlacement, wallTime } from "../model/view.ts";
import { LOOK_AGAIN_MS } from "./await-bound.ts";

/** The recorded delegate ended before it went: its last status is the pod's. */
export const endedBeforeItWent: Phase = (view, now) => {
  const last = lastOf(view);
  if (last === undefined || !isTerminal(last)) return undefined;
  const actions = feedback(view.proxy, last);
  return decided("Finished", actions, writeAgainAt(view.memory, actions, now));
};

/**
 * The delegate went before it ran, and the pod has no controller that would replace it: it gets another delegate in its member,
 * unless that refuses it.
 */
export const recreate: Phase = (view, now) => {
  const { proxy } = view;
  const member = boundMember(view);
  if (member === undefined || member.delegate !== undefined || refusalOf(member, view) !== undefined) return undefined;
  const last = lastOf(view);
  const started = hasStarted(proxy) || (last !== undefined && hasStarted(last));
  if (started || controllerOf(proxy) !== undefined) return undefined;
  // A delegate elsewhere may still run, and must have ended before the proxy gets another.
  if (surplusHolders(view).length > 0) return decided("Withdrawing", [], writeAgainAt(view.memory, [], now));
  return recreateIn(member, view, now);
};

/** The delegate went although no one on the host deleted the proxy: the pod fails, as after an eviction on a node. */
export const vanished: Phase = (view, now) => {
  const { proxy } = view;
  const member = boundMember(view);
  if (member === undefined) return undefined;
  const refusal = refusalOf(member, view);
  const again = refusal === undefined ? "" : ` and cannot be made again: ${refusal}`;
  const message = `Cluster ${member.name}: the pod was deleted there${again}`;
  const last = lastOf(view);
  const shown = last === undefined ? undefined : statusFrom(proxy, last, { gone: true });
  const base = shown === undefined ? proxy : { ...proxy, status: shown };
  const wanted = lostStatus(base, { message, disruptedBy: "DeletedInMember", now: wallTime(view, now) });
  const actions = verdict(proxy, wanted);
  return decided("Vanished", actions, writeAgainAt(view.memory, actions, now));
};

function recreateIn(member: MemberView, view: PodView, now: number): DelegationDecision {
  const { proxy, needs, memory } = view;
  const requeueAt = now + LOOK_AGAIN_MS;
  const unknown = unknownPlacement(view);
  if (unknown !== undefined) return waitFor(unknown, view, now, { requeueAt });
  if (isReady(member.readiness)) {
    const conditions = withoutConditionsOf(proxy, member.departed);
    const actions = [...conditions, createIn(proxy, member.name)];
    return decided("Placing", actions, writeAgainAt(memory, actions, now));
  }
  const why = whyUnprepared(needs, member);
  if (why === undefined) return decided("Preparing", [], requeueAt);
  return waitFor(why, view, now, { outcome: "Preparing", requeueAt });
}

/** The last state of the recorded delegate that its member showed. */
function lastOf(view: PodView): Stored<Pod> | undefined {
  const { departed } = boundMember(view) ?? {};
  return departed !== undefined && isRecorded(departed, view.proxy) ? departed : undefined;
}

/** Why the member would not take another delegate. */
function refusalOf({ name, misfit }: MemberView, { memory }: PodView): string | undefined {
  return misfit ?? memory.attempts[name]?.refusal?.message;
}
