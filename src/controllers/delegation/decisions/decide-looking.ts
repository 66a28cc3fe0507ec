import { DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { askedGrace, isDeleting, isTerminal } from "../../../pods/phase.ts";
import { isFor } from "./delegates.ts";
import { MARKS } from "./memory.ts";
import type { DelegationDecision, MemberView, Observed } from "./model.ts";

/**
 * What comes before any word on the end of a delegate that its member does not show; undefined when it is known to have gone. The watch
 * is of pods with the host's label: one that somebody has taken it off is told as deleted, and runs on. The member
 * itself is asked then, unless the delegate was last seen on its way out, or with its work done.
 */
export function decideLooking(
  proxy: Stored<Pod>,
  { name, departed }: MemberView,
  { memory }: Observed,
  now: number,
): DelegationDecision | undefined {
  const { uid: proxyUid, annotations } = proxy.metadata;
  const delegateUid = annotations?.[DELEGATE_UID_ANNOTATION];
  if (delegateUid === undefined || memory.gone === delegateUid) return undefined;
  const isLast = departed?.metadata.uid === delegateUid && isFor(departed, proxy);
  if (isLast && (isDeleting(departed) || isTerminal(departed))) return undefined;
  const outcome = "Looking";
  const look = { type: "look", member: name, proxyUid, delegateUid } as const;
  if (isDeleting(proxy)) {
    const gracePeriodSeconds = askedGrace(proxy);
    const ends = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    return { actions: [{ ...look, ends }], outcome };
  }
  const until = memory.ineffective?.get(MARKS) ?? 0;
  return now < until ? { actions: [], outcome, requeueAt: until } : { actions: [look], outcome };
}
