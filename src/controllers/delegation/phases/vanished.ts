import { DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import { statusFrom } from "../../../pods/feedback.ts";
import { lostPodStatus } from "../../../pods/lost-status.ts";
import { askedGrace, isDeleting, isTerminal } from "../../../pods/pod-state.ts";
import { heldUntil } from "../../../runtime/held-writes.ts";
import { DELEGATE_MARKS } from "../../../scheduling/memory.ts";
import { type DelegationDecision, decided, type Phase } from "../decision/decision.ts";
import { boundMember, isFor, lastRecorded } from "../decision/delegates.ts";
import { feedback, finalStatusWrite } from "../decision/feedback.ts";
import { type MemberView, type PodView, refusalOfOwnMember, wallTime } from "../decision/view.ts";
import { writeAgainAt } from "../decision/write-purpose.ts";

/** The recorded delegate ended before it went: its last status is the pod's. */
export const endedBeforeItWent: Phase = (view, now) => {
  const last = lastRecorded(view);
  if (last === undefined || !isTerminal(last)) return undefined;
  const actions = feedback(view.proxy, last);
  return decided("Finished", actions, writeAgainAt(view.memory, actions, now));
};

/** The recorded delegate may only have lost its label and run on, so its member is asked. */
export const confirmGone: Phase = (view, now) => {
  const member = boundMember(view);
  return member === undefined ? undefined : confirmGoneIn(member, view, now);
};

/** Returns undefined when the delegate has surely gone. */
export function confirmGoneIn(
  { name, departed }: MemberView,
  view: PodView,
  now: number,
): DelegationDecision | undefined {
  const { proxy, memory } = view;
  const { uid: proxyUid, annotations } = proxy.metadata;
  const delegateUid = annotations?.[DELEGATE_UID_ANNOTATION];
  if (delegateUid === undefined || memory.gone === delegateUid) return undefined;
  const isLast = departed?.metadata.uid === delegateUid && isFor(departed, proxy);
  if (isLast && (isDeleting(departed) || isTerminal(departed))) return undefined;
  const restore = { type: "restoreMarks", member: name, proxyUid, delegateUid } as const;
  if (isDeleting(proxy)) {
    const gracePeriodSeconds = askedGrace(proxy);
    const ends = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    return decided("Looking", [{ ...restore, ends }]);
  }
  const until = heldUntil(memory.held, { write: DELEGATE_MARKS, now });
  if (until !== undefined) return decided("Looking", [], until);
  return decided("Looking", [restore]);
}

/** The delegate went although no client deleted the proxy: the pod fails, as after an eviction. `recreate` serves a bare pod that had not started. */
export const vanished: Phase = (view, now) => {
  const { proxy } = view;
  const member = boundMember(view);
  if (member === undefined) return undefined;
  const refusal = refusalOfOwnMember(member, view);
  const again = refusal === undefined ? "" : ` and cannot be made again: ${refusal}`;
  const message = `Cluster ${member.name}: the pod was deleted there${again}`;
  const last = lastRecorded(view);
  const shown = last === undefined ? undefined : statusFrom(proxy, last, { gone: true });
  const base = shown === undefined ? proxy : { ...proxy, status: shown };
  const wanted = lostPodStatus(base, { message, disruptedBy: "DeletedInMember", now: wallTime(view, now) });
  const actions = finalStatusWrite(proxy, wanted);
  return decided("Vanished", actions, writeAgainAt(view.memory, actions, now));
};
