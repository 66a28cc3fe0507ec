import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { conditionOf, isBound, isGated, isLive, unschedulableMessage } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { allRefusals, nextRetry, openMembers } from "../delegation/model/open-members.ts";
import type { Action, Observed, OverflowDecision, Seen } from "./model.ts";
import { noRoomEither, staysForClaim } from "./reasons.ts";

// What a group, a division or a name waits for has no event of its own here.
const LOOK_AGAIN_MS = 1000;
// The host's own pods are not watched: a group that has left its nodes is found out about this late.
const GROUP_AGAIN_MS = 5000;

/**
 * A pod that the host's own scheduler is asked first for. It is left alone until that scheduler has said for long enough that
 * it finds no node; then it is bound to the virtual node of the best member, if one has room.
 */
export function decide(observed: Observed, now: number, wall: number = now): OverflowDecision {
  const { pod, optedIn, seen, afterMs } = observed;
  const member = memberOf(pod);
  if (member !== undefined && isOverflow(pod)) {
    return {
      actions: [{ type: "mark", uid: pod.metadata.uid, member }],
      outcome: "Marking",
      requeueAt: now + LOOK_AGAIN_MS,
    };
  }
  if (isBound(pod) || !isLive(pod)) return { actions: [], outcome: "Done" };
  if (!optedIn) return { actions: [], outcome: "NotOptedIn" };
  if (!isUnplaced(pod)) return { actions: [], outcome: "Scheduling" };
  const due = unschedulableSince(pod, seen, now - wall) + afterMs;
  if (now < due) return { actions: [], outcome: "Unschedulable", requeueAt: due };
  if (!observed.supported) {
    const message =
      "stays on this cluster: to delegate pods later than at their creation, it must be Kubernetes 1.35 or newer";
    return { actions: tell(observed, message), outcome: "Waiting" };
  }
  const stays = staysForClaim(pod);
  if (stays !== undefined) return { actions: tell(observed, stays), outcome: "Waiting" };
  return decideMember(observed, now);
}

/**
 * True when the host's scheduler has looked for a node and has none in view. One that makes room by preemption has named the
 * node already, and gated pods have not been looked at.
 */
export function isUnplaced(pod: Pod): boolean {
  const nominated = (pod.status?.nominatedNodeName ?? "") !== "";
  return !isGated(pod) && !nominated && unschedulableMessage(pod) !== undefined;
}

/**
 * Since when the host has had no node for the pod; epoch ms. Its condition tells, also after a restart of the controller. But
 * it counts from the pod's creation when a gate was lifted or a preemption has failed, and another machine's clock may be
 * wrong: so it counts within what was seen here. `aheadMs`: how far this process's count of time is ahead of the machine's.
 */
export function unschedulableSince(pod: Pod, { otherwiseAt = 0, unplacedAt }: Seen, aheadMs = 0): number {
  const told = Date.parse(conditionOf(pod, "PodScheduled")?.lastTransitionTime ?? "") + aheadMs;
  return Math.min(Math.max(Number.isNaN(told) ? unplacedAt : told, otherwiseAt), unplacedAt);
}

function decideMember(observed: Observed, now: number): OverflowDecision {
  const { pod } = observed;
  const view = observed.view();
  if (view.invalid !== undefined) return { actions: tell(observed, view.invalid), outcome: "Waiting" };
  const group = observed.group?.();
  if (group?.onHost === true) {
    const message = `stays on this cluster: ${group.text} has pods on its nodes`;
    return { actions: tell(observed, message), outcome: "Waiting", requeueAt: now + GROUP_AGAIN_MS };
  }
  const soon = now + LOOK_AGAIN_MS;
  if (view.follows === true || view.settling === true) return { actions: [], outcome: "Waiting", requeueAt: soon };
  const { ranking } = view;
  if (ranking === undefined) return { actions: [], outcome: "Waiting", requeueAt: soon };
  const open = openMembers(ranking.fitting, view, now);
  const occupied = new Set(view.members.filter(({ delegate }) => delegate !== undefined).map(({ name }) => name));
  const member = open.find((name) => !occupied.has(name));
  if (member === undefined && open.length > 0) return { actions: [], outcome: "Waiting", requeueAt: soon };
  if (member === undefined) {
    const requeueAt = nextRetry(view, now);
    return {
      actions: tell(observed, noRoomEither(allRefusals(ranking, view, now))),
      outcome: "Waiting",
      ...(requeueAt === undefined ? {} : { requeueAt }),
    };
  }
  if (group !== undefined && group.onHost === undefined) {
    return { actions: [{ type: "seek", uid: pod.metadata.uid }], outcome: "Seeking" };
  }
  return { actions: [overflow(pod, member)], outcome: "Overflowing" };
}

function overflow({ metadata: { uid, resourceVersion } }: Stored<Pod>, member: string): Action {
  return { type: "overflow", uid, resourceVersion, member };
}

/** Said once of a pod: it stays the host's scheduler's, which says the rest. */
function tell({ pod, told }: Observed, message: string): Action[] {
  return told ? [] : [{ type: "tell", uid: pod.metadata.uid, message }];
}
