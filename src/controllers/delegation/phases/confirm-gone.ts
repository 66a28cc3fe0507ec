import { DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import { askedGrace, isDeleting, isTerminal } from "../../../pods/pod-state.ts";
import { heldUntil } from "../../../runtime/held-writes.ts";
import { type DelegationDecision, decided, type Phase } from "../model/decision.ts";
import { boundMember, isFor } from "../model/delegates.ts";
import { MARKS } from "../model/memory.ts";
import type { MemberView, PodView } from "../model/view.ts";

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
  const until = heldUntil(memory.held, { write: MARKS, now });
  if (until !== undefined) return decided("Looking", [], until);
  return decided("Looking", [restore]);
}
