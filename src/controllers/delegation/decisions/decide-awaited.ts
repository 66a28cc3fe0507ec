import { DELEGATE_FINALIZER, DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { hasStarted, isBound, isTerminal, silentSchedulerMessage, unschedulableMessage } from "../../../pods/phase.ts";
import { forwards } from "./decide-forwarding.ts";
import { createIn, endsUnstarted, isFor } from "./delegates.ts";
import type { Action, DelegationDecision, MemberView, Observed } from "./model.ts";
import { isPrepared, whyUnprepared } from "./needs.ts";
import { report } from "./report.ts";
import { unschedulableFor } from "./shared-by.ts";
import { unknownPlacement } from "./unknown-placement.ts";

// What is made for a bound proxy in its member wakes nobody: only proxies without a node are told.
export const LOOK_AGAIN_MS = 1000;

/** True for a bound proxy without a delegate on record: it has overflowed, or its member was lost before it had shown one. */
export function awaitsDelegate({ metadata }: Pod): boolean {
  return metadata?.annotations?.[DELEGATE_UID_ANNOTATION] === undefined;
}

/** True while Legation holds the proxy until its delegate is known to be gone. */
export function holdsFinalizer({ metadata }: Pod): boolean {
  return metadata?.finalizers?.includes(DELEGATE_FINALIZER) ?? false;
}

/**
 * A bound proxy without a delegate on record. First it is held, so that none can be left behind; then it gets its delegate in
 * the member that it is bound to, and in no other; and this one is recorded when it has a node there.
 */
export function decideAwaited(
  proxy: Stored<Pod>,
  member: MemberView,
  observed: Observed,
  now: number,
): DelegationDecision {
  const { uid: proxyUid } = proxy.metadata;
  const { delegate, departed } = member;
  if (!holdsFinalizer(proxy)) return { actions: [{ type: "hold", proxyUid }], outcome: "Binding" };
  if (isFor(delegate, proxy) && delegate !== undefined) {
    if (endsUnstarted(delegate)) return { actions: [], outcome: "Withdrawing" };
    if (isBound(delegate) || isTerminal(delegate)) return { actions: [record(proxy, delegate)], outcome: "Binding" };
    return decideUnscheduled(proxy, member, delegate, observed, now);
  }
  // A delegate of an earlier proxy is still under that name: its end is an event of its own.
  if (delegate !== undefined) return { actions: [], outcome: "Withdrawing" };
  // It has run and is gone: once it is on record, what became of it is told as of any other.
  if (departed !== undefined && isFor(departed, proxy) && (hasStarted(departed) || isTerminal(departed))) {
    return { actions: [record(proxy, departed)], outcome: "Binding" };
  }
  return decideUnmade(proxy, member, observed, now);
}

/** It waits where it is bound. But others like it need not follow, once its member's scheduler has had its time. */
function decideUnscheduled(
  proxy: Stored<Pod>,
  member: MemberView,
  delegate: Stored<Pod>,
  observed: Observed,
  now: number,
): DelegationDecision {
  const { name, reachableSince, scheduleTimeoutMs, nodesVersion } = member;
  const reason = "NotPlaced";
  const message = unschedulableMessage(delegate);
  // A toleration that is added while it waits may be all that it lacks.
  const changes = forwards(proxy, member, delegate, observed, now);
  const attempt = observed.memory.attempts.get(name);
  const deadline = Math.max(attempt?.since ?? now, reachableSince) + scheduleTimeoutMs;
  if (message === undefined) {
    if (now < deadline) return { actions: changes, outcome: "Scheduling", requeueAt: deadline };
    const silence = `${name}: ${silentSchedulerMessage(delegate, scheduleTimeoutMs / 1000)}`;
    return {
      actions: [...report(proxy, observed, { reason, message: silence, now }), ...changes],
      outcome: "Scheduling",
    };
  }
  const told = [...report(proxy, observed, { reason, message: `${name}: ${message}`, now }), ...changes];
  if (attempt === undefined || attempt.refusal !== undefined) return { actions: told, outcome: "Scheduling" };
  if (now < deadline) return { actions: told, outcome: "Scheduling", requeueAt: deadline };
  const { uid: proxyUid } = proxy.metadata;
  const refusal = { cluster: name, reason: "Unschedulable", message } as const;
  const refuse: Action = { type: "refuse", proxyUid, refusal, nodesVersion, sharedBy: unschedulableFor(delegate) };
  return { actions: [...told, refuse], outcome: "Scheduling" };
}

function decideUnmade(
  proxy: Stored<Pod>,
  { name, candidate }: MemberView,
  observed: Observed,
  now: number,
): DelegationDecision {
  const waiting = (reason: string, message: string, requeueAt: number): DelegationDecision => ({
    actions: report(proxy, observed, { reason, message, now }),
    outcome: "Waiting",
    requeueAt,
  });
  // How its namespace wants it in the member, nobody knows.
  const unknown = unknownPlacement(observed);
  if (unknown !== undefined) return waiting(unknown.reason, unknown.message, now + LOOK_AGAIN_MS);
  const needs = observed.needs?.();
  if (!isPrepared(needs, name)) {
    const why = whyUnprepared(needs, name);
    if (why !== undefined) return waiting(why.reason, why.message, now + LOOK_AGAIN_MS);
    return { actions: [], outcome: "Preparing", requeueAt: now + LOOK_AGAIN_MS };
  }
  const overridden = observed.specIn?.(candidate) ?? {};
  if ("problem" in overridden) {
    return waiting("RefusedByMember", `${name}: ${overridden.problem}`, now + LOOK_AGAIN_MS);
  }
  const { refusal, until = 0 } = observed.memory.attempts.get(name) ?? {};
  if (refusal !== undefined && now < until) return waiting(refusal.reason, `${name}: ${refusal.message}`, until);
  return { actions: [createIn(proxy, observed, name)], outcome: "Placing" };
}

function record(proxy: Stored<Pod>, delegate: Stored<Pod>): Action {
  const { uid: proxyUid, resourceVersion } = proxy.metadata;
  const memberNode = delegate.spec?.nodeName ?? "";
  return { type: "record", proxyUid, resourceVersion, delegateUid: delegate.metadata.uid, memberNode };
}
