import { isBound, isDeleting, isTerminal } from "../../pods/pod-state.ts";
import { type DelegationDecision, decided, type Phase } from "./decision/decision.ts";
import { awaitsDelegate, holderOf } from "./decision/delegates.ts";
import { hasProxy, type PodView, type View } from "./decision/view.ts";
import { adopt } from "./phases/adopt.ts";
import { awaitPreviousLeader } from "./phases/await-previous-leader.ts";
import { awaitBoundScheduling, awaitScheduling } from "./phases/await-scheduling.ts";
import { bind, bindDeparted, repeatBinding } from "./phases/bind.ts";
import { awaitBest, awaitNeeds, awaitPlacement, choose, followGroup, gated } from "./phases/choose.ts";
import { ending } from "./phases/ending.ts";
import { ended, follow } from "./phases/follow.ts";
import { addFinalizer, record, repeatRecord } from "./phases/record.ts";
import { createBound, recreate } from "./phases/recreate.ts";
import { confirmEnd, release, released, releaseForced } from "./phases/release.ts";
import { resolveUncertain } from "./phases/resolve-uncertain.ts";
import { showRefusedWrites } from "./phases/show-refused-writes.ts";
import { SWEEP_AGAIN_MS, sweep } from "./phases/sweep.ts";
import { lostHolder, unreachable } from "./phases/unreachable.ts";
import { confirmGone, endedBeforeItWent, vanished } from "./phases/vanished.ts";
import { awaitWithdrawal, confirmOther, leaveOthers, withdrawDuplicates } from "./phases/withdraw.ts";

/** A proxy without a node of which no member shows a delegate: one member gets it. */
const CHOOSING: readonly Phase[] = [
  showRefusedWrites,
  gated,
  repeatBinding,
  bindDeparted,
  awaitPlacement,
  resolveUncertain,
  awaitPreviousLeader,
  followGroup,
  awaitNeeds,
  awaitBest,
  choose,
];

/** A proxy without a node that has a delegate: the member's scheduler answers, then the proxy is bound. */
const SCHEDULING: readonly Phase[] = [
  showRefusedWrites,
  gated,
  repeatBinding,
  withdrawDuplicates,
  lostHolder,
  awaitWithdrawal,
  confirmOther,
  bind,
  awaitScheduling,
];

/** A proxy that was bound before it had a delegate: by the host before it became a proxy, or as its member was lost. */
const BOUND_FIRST: readonly Phase[] = [
  showRefusedWrites,
  unreachable,
  repeatRecord,
  leaveOthers,
  addFinalizer,
  record,
  awaitBoundScheduling,
  awaitPreviousLeader,
  createBound,
];

/** A bound proxy with a delegate on record, until it ends. */
const RUNNING: readonly Phase[] = [
  showRefusedWrites,
  unreachable,
  ended,
  follow,
  repeatRecord,
  adopt,
  endedBeforeItWent,
  confirmGone,
  recreate,
  vanished,
];

const ENDING: readonly Phase[] = [showRefusedWrites, releaseForced, released, ending, confirmEnd, release];

/** Decides by the first phase that answers. Stray delegates go last: a member that keeps one must not hold up the proxy. */
export function decide(view: View, now: number): DelegationDecision {
  const strays = sweep(view);
  if (!hasProxy(view)) return decided("Orphaned", strays);
  const decision = firstAnswer(phasesOf(view), view, now) ?? decided("Waiting", []);
  if (strays.length === 0) return decision;
  const { actions, outcome, requeueAt } = decision;
  return decided(outcome, [...actions, ...strays], requeueAt, now + SWEEP_AGAIN_MS);
}

function phasesOf(view: PodView): readonly Phase[] {
  const { proxy } = view;
  if (isDeleting(proxy)) return ENDING;
  if (!isBound(proxy)) return holderOf(view) === undefined ? CHOOSING : SCHEDULING;
  return awaitsDelegate(proxy) && !isTerminal(proxy) ? BOUND_FIRST : RUNNING;
}

function firstAnswer(phases: readonly Phase[], view: PodView, now: number): DelegationDecision | undefined {
  for (const phase of phases) {
    const decision = phase(view, now);
    if (decision !== undefined) return decision;
  }
  return undefined;
}
