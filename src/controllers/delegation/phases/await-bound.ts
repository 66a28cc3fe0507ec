import { unschedulableMessage } from "../../../pods/pod-state.ts";
import { type Action, decided, type Phase } from "../model/decision.ts";
import { boundMember, createIn } from "../model/delegates.ts";
import { forwards } from "../model/forwarding.ts";
import { writeAgainAt } from "../model/futile-writes.ts";
import { because, isReady, whyUnprepared } from "../model/needs.ts";
import { report, waitFor } from "../model/report.ts";
import { unknownPlacement } from "../model/view.ts";
import { refusalBy, unschedulableFor } from "./await-scheduling.ts";

/** Pause between two looks at what a bound proxy waits for, as no event tells; ms. */
export const LOOK_AGAIN_MS = 1000;

/**
 * The delegate of a proxy that was bound without one waits for a node, and the pod has no other member to go to. After the
 * scheduler's time other pods like it are not sent there.
 */
export const awaitBoundScheduling: Phase = (view, now) => {
  const { proxy, memory } = view;
  const member = boundMember(view);
  if (member?.delegate === undefined) return undefined;
  const { name, delegate, reachableSince, scheduleTimeoutMs, nodesVersion } = member;
  const refusal = refusalBy({ ...member, delegate });
  const why = because("NotPlaced", [refusal]);
  const changes = forwards(proxy, name, delegate, view, now);
  const again = writeAgainAt(memory, changes, now);
  const attempt = memory.attempts[name];
  const deadline = Math.max(attempt?.since ?? now, reachableSince) + scheduleTimeoutMs;
  const message = unschedulableMessage(delegate);
  if (message === undefined) {
    if (now < deadline) return decided("Scheduling", changes, deadline, again);
    const { actions, againAt } = report(why, view, now);
    return decided("Scheduling", [...actions, ...changes], againAt, again);
  }
  const { actions, againAt } = report(why, view, now);
  const told = [...actions, ...changes];
  if (attempt === undefined || attempt.refusal !== undefined) return decided("Scheduling", told, againAt, again);
  if (now < deadline) return decided("Scheduling", told, deadline, againAt, again);
  const { uid: proxyUid } = proxy.metadata;
  const refuse: Action = { type: "noteRefusal", proxyUid, refusal, nodesVersion, sharedBy: unschedulableFor(delegate) };
  return decided("Scheduling", [...told, refuse], againAt, again);
};

/** A proxy that was bound without a delegate gets one in the member that it is bound to, and in no other. */
export const createBound: Phase = (view, now) => {
  const { proxy, needs, memory } = view;
  const member = boundMember(view);
  if (member === undefined) return undefined;
  const { name, readiness, misfit } = member;
  const soon = { requeueAt: now + LOOK_AGAIN_MS };
  const unknown = unknownPlacement(view);
  if (unknown !== undefined) return waitFor(unknown, view, now, soon);
  if (!isReady(readiness)) {
    const why = whyUnprepared(needs, member);
    return why === undefined ? decided("Preparing", [], now + LOOK_AGAIN_MS) : waitFor(why, view, now, soon);
  }
  if (misfit !== undefined) {
    const reason = "RefusedByMember";
    return waitFor(because(reason, [{ cluster: name, reason, message: misfit }]), view, now, soon);
  }
  const { refusal, until = 0 } = memory.attempts[name] ?? {};
  if (refusal !== undefined && now < until) {
    return waitFor(because(refusal.reason, [refusal]), view, now, { requeueAt: until });
  }
  return decided("Placing", [createIn(proxy, name)]);
};
