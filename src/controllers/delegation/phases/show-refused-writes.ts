import { timestamp } from "../../../api/kubernetes.ts";
import { isDeleting } from "../../../pods/pod-state.ts";
import { refusedConditions } from "../../../pods/proxy-conditions.ts";
import { RESIZE } from "../../../scheduling/memory.ts";
import { decided, type Phase } from "../decision/decision.ts";
import { blocksDeletion, isForced } from "../decision/delegates.ts";
import { wallTime } from "../decision/view.ts";
import { isFutile, statusPurpose, writeAgainAt } from "../decision/write-purpose.ts";

/** The condition `legation.dev/Refused` names the writes that a cluster refuses. It comes first: the next write may be refused, too. */
export const showRefusedWrites: Phase = (view, now) => {
  const { proxy, memory, members } = view;
  const refused = Object.entries(memory.held ?? {}).flatMap(([write, { refusal, until }]) =>
    // The condition PodResizePending shows a resize.
    refusal === undefined || now >= until || write === RESIZE
      ? []
      : [{ ...refusal.reported, since: timestamp(wallTime(view, refusal.since)) }],
  );
  const conditions = refusedConditions(proxy, refused);
  if (conditions.length === 0) return undefined;
  // A pod that is about to go need not show that its writes are taken again.
  const goes = isDeleting(proxy) && (isForced(proxy) || !members.some((member) => blocksDeletion(member, view, now)));
  if (refused.length === 0 && goes) return undefined;
  const { uid, resourceVersion } = proxy.metadata;
  const patch = { metadata: { uid }, status: { conditions } };
  if (isFutile(memory, patch, statusPurpose(patch), now)) return undefined;
  const actions = [{ type: "status", patch, resourceVersion }] as const;
  return decided("Refused", actions, writeAgainAt(memory, actions, now));
};
