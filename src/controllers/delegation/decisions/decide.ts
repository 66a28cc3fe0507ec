import { DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { ownerOf } from "../../../pods/delegate.ts";
import { isBound, isDeleting, isTerminal } from "../../../pods/phase.ts";
import { refusedConditions } from "../../../pods/proxy-conditions.ts";
import { awaitsDelegate } from "./decide-awaited.ts";
import { decideEnding, holdsUp } from "./decide-ending.ts";
import { decidePlacing } from "./decide-placing.ts";
import { decideRunning, surplusHolders } from "./decide-running.ts";
import { withdraw } from "./delegates.ts";
import { isFutile } from "./futile.ts";
import { INEFFECTIVE_MS } from "./memory.ts";
import type { Action, DelegationDecision, MemberView, Observed } from "./model.ts";
import { statusPurpose } from "./purpose.ts";
import { COUNT_AGAIN_MS, tellAgainAt } from "./report.ts";

// A member that keeps what is to be swept is told again this often.
const SWEEP_AGAIN_MS = 10_000;
// What was refused, or undone, counts as tried until then. One that has ended has no more news to bring it up again.
const TRIED_AGAIN_MS = INEFFECTIVE_MS + 1000;

/**
 * The whole life of one proxy as a function of what is: never of which event came. Stale delegates under the proxy's
 * name, left by an earlier proxy uid, and those that a bound proxy has beside its own, go whatever the proxy does meanwhile,
 * but last: any member can say that it has one, and must not hold up a pod of another.
 */
export function decide(observed: Observed, now: number, wall: number = now): DelegationDecision {
  const { proxy } = observed;
  const sweeps = [...surplusDelegates(observed), ...staleDelegates(observed)];
  if (proxy === undefined) return { actions: sweeps, outcome: "Orphaned" };
  const decided = lookAgain(decideFor(proxy, observed, now, wall), proxy, observed, now);
  const decision = tryAgain(tellRefused(decided, proxy, observed, now), observed, now);
  if (sweeps.length === 0) return decision;
  const requeueAt = Math.min(decision.requeueAt ?? Number.POSITIVE_INFINITY, now + SWEEP_AGAIN_MS);
  return { ...decision, actions: [...decision.actions, ...sweeps], requeueAt };
}

function decideFor(proxy: Stored<Pod>, observed: Observed, now: number, wall: number): DelegationDecision {
  if (isDeleting(proxy)) return decideEnding(proxy, observed, now, wall);
  return isBound(proxy) ? decideRunning(proxy, observed, now, wall) : decidePlacing(proxy, observed, now);
}

/**
 * A reason why the pod waits that differs in its numbers only is told when the last one is old enough, and the same one again before its
 * event is forgotten.
 */
function lookAgain(
  decision: DelegationDecision,
  proxy: Stored<Pod>,
  { memory: { reportedAt } }: Observed,
  now: number,
): DelegationDecision {
  if (reportedAt === undefined || (isBound(proxy) && !awaitsDelegate(proxy))) return decision;
  const times = [reportedAt + COUNT_AGAIN_MS, tellAgainAt(proxy, reportedAt)].filter((at) => now < at);
  if (times.length === 0) return decision;
  return { ...decision, requeueAt: Math.min(decision.requeueAt ?? Number.POSITIVE_INFINITY, ...times) };
}

/**
 * A status or a forward is decided on again later, in case it has no effect. If it has, the decision is another one then. What was not taken
 * lately is decided on again as soon as it may be tried.
 */
function tryAgain(decision: DelegationDecision, { memory }: Observed, now: number): DelegationDecision {
  const { ineffective = new Map<string, number>(), resize } = memory;
  const times = [...ineffective.values(), resize?.until ?? 0].filter((until) => until > now);
  if (decision.actions.some(({ type }) => type === "status" || type === "forward")) times.push(now + TRIED_AGAIN_MS);
  if (times.length === 0) return decision;
  return { ...decision, requeueAt: Math.min(decision.requeueAt ?? Number.POSITIVE_INFINITY, ...times) };
}

/**
 * The condition that names writes which are refused comes before them, and alone where the status is to be written anyway: that may be
 * what is refused. A pod that goes need not show that its writes are taken again.
 */
function tellRefused(
  decision: DelegationDecision,
  proxy: Stored<Pod>,
  { memory }: Observed,
  now: number,
): DelegationDecision {
  const refused = [...(memory.refused?.values() ?? [])].filter(({ until }) => now < until);
  const requeueAt = Math.min(decision.requeueAt ?? Number.POSITIVE_INFINITY, ...refused.map(({ until }) => until));
  const timed = refused.length === 0 ? decision : { ...decision, requeueAt };
  const conditions = refusedConditions(proxy, refused);
  if (conditions.length === 0 || (refused.length === 0 && decision.outcome === "Released")) return timed;
  const { uid, resourceVersion } = proxy.metadata;
  const patch = { metadata: { uid }, status: { conditions } };
  if (isFutile(memory, patch, statusPurpose(patch), now)) return timed;
  const rest = timed.actions.some(({ type }) => type === "status") ? [] : timed.actions;
  return { ...timed, actions: [{ type: "status", patch, resourceVersion }, ...rest] };
}

function surplusDelegates(observed: Observed): Action[] {
  const { proxy } = observed;
  if (proxy === undefined || !isBound(proxy)) return [];
  // A cluster that has joined under two names may show under the other one first what has just been made for the proxy.
  if (awaitsDelegate(proxy) && !isDeleting(proxy) && !isTerminal(proxy)) return [];
  return surplusHolders(proxy, observed)
    .filter((member) => !isDeleting(proxy) || !holdsUp(member, proxy))
    .flatMap(withdraw)
    .map((removal) => ({ ...removal, surplus: true }));
}

function staleDelegates({ proxy, members }: Observed): Action[] {
  return members.flatMap((member) => {
    const delegate = reachableDelegate(member);
    if (delegate === undefined || isDeleting(delegate)) return [];
    const proxyUid = ownerOf(delegate)?.uid;
    if (proxyUid === undefined || proxyUid === proxy?.metadata.uid) return [];
    // Somebody has made it another one's: it gets its own back.
    if (delegate.metadata.uid === proxy?.metadata.annotations?.[DELEGATE_UID_ANNOTATION]) return [];
    return [{ type: "sweep", member: member.name, uid: delegate.metadata.uid, proxyUid }];
  });
}

function reachableDelegate({ reachable, delegate }: MemberView): Stored<Pod> | undefined {
  return reachable ? delegate : undefined;
}
