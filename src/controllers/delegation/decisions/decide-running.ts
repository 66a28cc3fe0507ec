import { DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, PodStatus, Stored } from "../../../api/kubernetes.ts";
import { notReady, statusFrom, statusPatch } from "../../../pods/feedback.ts";
import { conditionsWithout } from "../../../pods/followed-conditions.ts";
import type { ResizeRefusal } from "../../../pods/forward.ts";
import { lostStatus } from "../../../pods/lost-status.ts";
import { controllerOf, deletionGrace, hasStarted, isDeleting, isReplaced, isTerminal } from "../../../pods/phase.ts";
import { memberOf } from "../../../pods/proxy.ts";
import { awaitsDelegate, decideAwaited, LOOK_AGAIN_MS } from "./decide-awaited.ts";
import { forwards, refusedResize } from "./decide-forwarding.ts";
import { decideLooking } from "./decide-looking.ts";
import { createIn, endsUnstarted, isFor, withdraw } from "./delegates.ts";
import { isFutile } from "./futile.ts";
import type { Action, ActionOf, DelegationDecision, MemberView, Memory, Observed } from "./model.ts";
import { isPrepared, whyUnprepared } from "./needs.ts";
import { statusPurpose } from "./purpose.ts";
import { report } from "./report.ts";
import { unknownPlacement } from "./unknown-placement.ts";

/** A bound proxy: keep the delegate like the proxy, and the proxy's status like the delegate's. */
export function decideRunning(proxy: Stored<Pod>, observed: Observed, now: number, wall: number): DelegationDecision {
  const member = boundMember(proxy, observed);
  if (member === undefined || !member.reachable || !member.read) {
    return { actions: unheardOf(proxy, member, observed, wall), outcome: "Unreachable" };
  }
  const { delegate } = member;
  if (awaitsDelegate(proxy) && !isTerminal(proxy)) {
    return leaveOthers(proxy, member, observed) ?? decideAwaited(proxy, member, observed, now);
  }
  if (delegate !== undefined && isRecorded(delegate, proxy)) {
    return {
      actions: follow(proxy, member, delegate, { observed, now, wall }),
      outcome: isTerminal(proxy) ? "Finished" : "Running",
    };
  }
  if (isTerminal(proxy)) {
    // One that was made while the store did not yet show how the proxy had ended: nobody would ever hear of it.
    return { actions: isFor(delegate, proxy) ? withdraw(member) : [], outcome: "Finished" };
  }
  if (delegate !== undefined && isFor(delegate, proxy)) {
    if (endsUnstarted(delegate)) return { actions: [], outcome: "Withdrawing" };
    return { actions: adopt(proxy, member, delegate, { memory: observed.memory, now }), outcome: "Running" };
  }
  return vanished(proxy, member, observed, { now, wall });
}

/**
 * Nobody may count on a pod whose node is not heard of, or send it requests: an EndpointSlice calls it serving for as long as it is
 * Ready, also while it ends. As the node lifecycle controller does, which leaves out no pod that is being deleted.
 */
export function unheardOf(
  proxy: Stored<Pod>,
  member: MemberView | undefined,
  observed: Observed,
  wall: number,
): Action[] {
  if (member === undefined || isTerminal(proxy) || observed.unheard?.(member.name) !== true) return [];
  return statusWrite(proxy, notReady(proxy, proxy.status ?? {}, wall));
}

/**
 * Ends what a proxy that was bound without a delegate has in another member: an earlier leader's Binding was done late. Undefined when nothing
 * is in the way of its delegate.
 */
function leaveOthers(proxy: Stored<Pod>, member: MemberView, observed: Observed): DelegationDecision | undefined {
  const { uncertain } = observed.memory;
  // A cluster that has joined under two names may show under the other one first what has just been made for the proxy.
  if (isFor(member.delegate, proxy) || uncertain === member.name) return undefined;
  const outcome = "Withdrawing";
  const others = surplusHolders(proxy, observed);
  if (others.length > 0) return { actions: others.flatMap(withdraw), outcome };
  if (uncertain === undefined) return undefined;
  return { actions: [{ type: "resolve", member: uncertain, proxyUid: proxy.metadata.uid }], outcome };
}

/** The members that have, or say that they have, a delegate of a bound proxy beside that in its own member. */
export function surplusHolders(proxy: Stored<Pod>, observed: Observed): MemberView[] {
  const member = boundMember(proxy, observed);
  return observed.members.filter(
    (other) => other !== member && isFor(other.delegate, proxy) && !isSame(other.delegate, proxy, member),
  );
}

/** The very delegate that the proxy has: a cluster that has joined under two names shows it twice. */
function isSame(delegate: Pod | undefined, proxy: Pod, member: MemberView | undefined): boolean {
  if (member === undefined) return false;
  const uid = delegate?.metadata?.uid;
  return uid === proxy.metadata?.annotations?.[DELEGATE_UID_ANNOTATION] || uid === member.delegate?.metadata.uid;
}

/** The member that a bound proxy was given to; undefined when its Cluster is gone. */
export function boundMember(proxy: Pod, { members }: Observed): MemberView | undefined {
  const name = memberOf(proxy);
  return members.find((member) => member.name === name);
}

/** True when the proxy records exactly this pod as its delegate: status comes from no other. */
export function isRecorded(delegate: Stored<Pod>, proxy: Stored<Pod>): boolean {
  return isFor(delegate, proxy) && proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION] === delegate.metadata.uid;
}

/** Status from the delegate, as one write; nothing when the proxy shows it already. */
export function feedback(proxy: Stored<Pod>, delegate: Stored<Pod>, refused?: ResizeRefusal): Action[] {
  const wanted = statusFrom(proxy, delegate, { refused });
  return wanted === undefined ? [] : statusWrite(proxy, wanted);
}

/** One status write; nothing when the proxy shows `wanted` already. */
export function statusWrite(proxy: Stored<Pod>, wanted: PodStatus): ActionOf<"status">[] {
  const patch = statusPatch(proxy, wanted);
  return patch === undefined ? [] : [{ type: "status", patch, resourceVersion: proxy.metadata.resourceVersion }];
}

/** A final status that no delegate has told: nothing is written when the proxy has changed since, as it may have ended. */
export function verdict(proxy: Stored<Pod>, wanted: PodStatus): Action[] {
  const { uid, resourceVersion } = proxy.metadata;
  const patch = statusPatch(proxy, wanted);
  if (patch === undefined) return [];
  return [{ type: "status", patch: { ...patch, metadata: { uid, resourceVersion } }, resourceVersion }];
}

function follow(
  proxy: Stored<Pod>,
  member: MemberView,
  delegate: Stored<Pod>,
  { observed, now, wall }: { readonly observed: Observed; readonly now: number; readonly wall: number },
): Action[] {
  // As kubelet: a pod whose phase on the API server is terminal has no business running.
  if (isTerminal(proxy)) return isTerminal(delegate) ? feedback(proxy, delegate) : withdraw(member);
  if (isDeleting(delegate) && !isTerminal(delegate)) {
    if (!isReplaced(proxy)) return lastOf(proxy, delegate, wall);
    // Not at once, since the containers may have been given time.
    const graceSeconds = Math.max(1, deletionGrace(delegate) ?? 1);
    return [...feedback(proxy, delegate), { type: "evict", proxyUid: proxy.metadata.uid, graceSeconds }];
  }
  // Feedback first: a member that takes nothing must not keep the host from hearing what runs there.
  const refused = isTerminal(delegate) ? undefined : refusedResize(proxy, delegate, observed.memory);
  return [...feedback(proxy, delegate, refused), ...forwards(proxy, member, delegate, observed, now)];
}

/** A pod that is being deleted is no endpoint and no healthy replica. The proxy is not being deleted: its readiness has to say so. */
function lastOf(proxy: Stored<Pod>, delegate: Stored<Pod>, wall: number): Action[] {
  const wanted = statusFrom(proxy, delegate);
  return wanted === undefined ? [] : statusWrite(proxy, notReady(proxy, wanted, wall));
}

/** A second delegate of the same proxy: kept when the proxy has never started, so that it runs at most once. */
function adopt(
  proxy: Stored<Pod>,
  member: MemberView,
  delegate: Stored<Pod>,
  { memory, now }: { readonly memory: Memory; readonly now: number },
): Action[] {
  if (hasStarted(proxy)) return withdraw(member);
  const memberNode = delegate.spec?.nodeName;
  if (memberNode === undefined) return [];
  // Whether the proxy has changed since is known once that is shown. What is refused or undone here must not hold up the rest.
  const without = withoutThoseOf(proxy, member).filter(
    ({ patch }) => !isFutile(memory, patch, statusPurpose(patch), now),
  );
  if (without.length > 0) return without;
  const { uid: proxyUid, resourceVersion } = proxy.metadata;
  return [{ type: "record", proxyUid, resourceVersion, delegateUid: delegate.metadata.uid, memberNode }];
}

/** The delegate went and nobody on the host had asked for it: what an eviction is on a node. */
function vanished(
  proxy: Stored<Pod>,
  member: MemberView,
  observed: Observed,
  { now, wall }: { readonly now: number; readonly wall: number },
): DelegationDecision {
  const { memory } = observed;
  const last = member.departed !== undefined && isRecorded(member.departed, proxy) ? member.departed : undefined;
  if (last !== undefined && isTerminal(last)) return { actions: feedback(proxy, last), outcome: "Finished" };
  const looking = decideLooking(proxy, member, observed, now);
  if (looking !== undefined) return looking;
  const started = hasStarted(proxy) || (last !== undefined && hasStarted(last));
  const overridden = observed.specIn?.(member.candidate) ?? {};
  const refusal = "problem" in overridden ? { message: overridden.problem } : memory.attempts.get(member.name)?.refusal;
  if (!started && controllerOf(proxy) === undefined && member.delegate === undefined && refusal === undefined) {
    // It may still run elsewhere, and the proxy gets no other delegate before that has ended.
    if (surplusHolders(proxy, observed).length > 0) return { actions: [], outcome: "Withdrawing" };
    return makeAgain(proxy, member, observed, now);
  }
  // A bound pod has no other place to go: as on a node that refuses it, it has failed.
  const again = refusal === undefined ? "" : ` and cannot be made again: ${refusal.message}`;
  const message = `Cluster ${member.name}: the pod was deleted there${again}`;
  const shown = last === undefined ? undefined : statusFrom(proxy, last, { gone: true });
  const base = shown === undefined ? proxy : { ...proxy, status: shown };
  const wanted = lostStatus(base, { message, disruptedBy: "DeletedInMember", now: wall });
  return { actions: verdict(proxy, wanted), outcome: "Lost" };
}

/** Another delegate for a proxy whose first one never started, as soon as all is known and there that it takes. */
function makeAgain(proxy: Stored<Pod>, member: MemberView, observed: Observed, now: number): DelegationDecision {
  const { name } = member;
  const requeueAt = now + LOOK_AGAIN_MS;
  // How its namespace wants it in the member, nobody knows.
  const unknown = unknownPlacement(observed);
  if (unknown !== undefined) {
    return { actions: report(proxy, observed, { ...unknown, now }), outcome: "Waiting", requeueAt };
  }
  const needs = observed.needs?.();
  if (isPrepared(needs, name)) {
    return { actions: [...withoutThoseOf(proxy, member), createIn(proxy, observed, name)], outcome: "Placing" };
  }
  const why = whyUnprepared(needs, name);
  return {
    actions: why === undefined ? [] : report(proxy, observed, { ...why, now }),
    outcome: "Preparing",
    requeueAt,
  };
}

/** What the delegate on record, which went, had set does not hold for the next one. */
function withoutThoseOf(proxy: Stored<Pod>, { departed }: MemberView): ActionOf<"status">[] {
  if (departed === undefined || !isRecorded(departed, proxy)) return [];
  return statusWrite(proxy, { ...proxy.status, conditions: conditionsWithout(proxy, departed) });
}
