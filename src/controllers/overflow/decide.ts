import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { conditionOf, isBound, isGated, isLive, unschedulableMessage } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { lookAgain, UNTOLD_MS } from "../../runtime/requeue.ts";
import { noRoomEither, staysForClaim } from "../../scheduling/overflow-reasons.ts";
import { allRefusals, nextRetry, openMembers } from "../../scheduling/retries/pause.ts";
import type { Action, Observed, OverflowDecision, Seen } from "./model.ts";

// The host's own pods are not watched: that a group has left its nodes is noticed this late.
const GROUP_AGAIN_MS = 5000;

/** Leaves a pod to the host's scheduler until that has found no node for long enough. */
export function decide(observed: Observed, now: number, wall: number = now): OverflowDecision {
  const { pod, optedIn, seen, afterMs } = observed;
  const member = memberOf(pod);
  if (member !== undefined && isOverflow(pod)) {
    return {
      actions: [{ type: "mark", uid: pod.metadata.uid, member }],
      outcome: "Marking",
      requeueAt: now + UNTOLD_MS,
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

/** Reports whether the host's scheduler found no node. A pod that waits for a preemption has a nominated one. */
export function isUnplaced(pod: Pod): boolean {
  const nominated = (pod.status?.nominatedNodeName ?? "") !== "";
  return !isGated(pod) && !nominated && unschedulableMessage(pod) !== undefined;
}

/** The condition's time survives a restart, but may be older than a lifted gate: it counts within what was seen here. */
export function unschedulableSince(pod: Pod, { otherwiseAt = 0, unplacedAt }: Seen, aheadMs = 0): number {
  const reportedAt = Date.parse(conditionOf(pod, "PodScheduled")?.lastTransitionTime ?? "") + aheadMs;
  return Math.min(Math.max(Number.isNaN(reportedAt) ? unplacedAt : reportedAt, otherwiseAt), unplacedAt);
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
  const soon = now + UNTOLD_MS;
  if (view.follows === true || view.syncing === true || view.unseen !== undefined) {
    return { actions: [], outcome: "Waiting", requeueAt: soon };
  }
  const { ranking } = view;
  if (ranking === undefined) return { actions: [], outcome: "Waiting", requeueAt: soon };
  const open = openMembers(ranking.fitting, view, now);
  const occupied = new Set(view.members.filter(({ delegate }) => delegate !== undefined).map(({ name }) => name));
  const member = open.find((name) => !occupied.has(name));
  if (member === undefined && open.length > 0) return { actions: [], outcome: "Waiting", requeueAt: soon };
  if (member === undefined) {
    const actions = tell(observed, noRoomEither(allRefusals(ranking, view, now)));
    return { actions, outcome: "Waiting", ...lookAgain(nextRetry(view, now)) };
  }
  if (group !== undefined && group.onHost === undefined) {
    return { actions: [{ type: "readHostGroups", uid: pod.metadata.uid }], outcome: "Seeking" };
  }
  return { actions: [overflow(pod, member)], outcome: "Overflowing" };
}

function overflow({ metadata: { uid, resourceVersion } }: Stored<Pod>, member: string): Action {
  return { type: "overflow", uid, resourceVersion, member };
}

function tell({ pod, reported }: Observed, message: string): Action[] {
  return reported ? [] : [{ type: "tell", uid: pod.metadata.uid, message }];
}
