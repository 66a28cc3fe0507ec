import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import { BEING_REMOVED, CORDONED, NO_VIRTUAL_NODE } from "../../../placement/member-candidate.ts";
import { explain } from "../../../placement/rank.ts";
import { taintRefusal } from "../../../placement/rules.ts";
import { isBound, isTerminal, silentSchedulerMessage, unschedulableMessage } from "../../../pods/phase.ts";
import { forwards } from "./decide-forwarding.ts";
import { decideLost } from "./decide-lost.ts";
import { bindTo, endsUnstarted, withdrawWaiting } from "./delegates.ts";
import type { Action, DelegationDecision, MemberView, Observed } from "./model.ts";
import { allRefusals, nextExpiry, openMembers, preemptable, rankFor, requestsFor, withRefusal } from "./ranking.ts";
import { report } from "./report.ts";
import { unschedulableFor } from "./shared-by.ts";
import { unknownPlacement } from "./unknown-placement.ts";

// Its scheduler makes room on the node that it has named, by evicting pods that may take their time to end.
const PREEMPTION_MS = 10 * 60_000;

/** A member has the delegate: its scheduler is given its time, and then the next member that has room gets the pod. */
export function decideHeld(
  proxy: Stored<Pod>,
  holder: MemberView,
  delegate: Stored<Pod>,
  observed: Observed,
  now: number,
): DelegationDecision {
  if (!holder.reachable) return decideLost(proxy, holder, observed, { has: "has", now });
  if (endsUnstarted(delegate)) return { actions: [], outcome: "Withdrawing" };
  if (isBound(delegate) || isTerminal(delegate)) {
    if (holder.candidate.closed === NO_VIRTUAL_NODE) {
      const message = `${holder.name}: ${NO_VIRTUAL_NODE.message}`;
      return { actions: report(proxy, observed, { reason: NO_VIRTUAL_NODE.reason, message, now }), outcome: "Waiting" };
    }
    const bind = bindTo(proxy, holder, delegate);
    return { actions: [bind, ...announce(proxy, holder, observed)], outcome: "Binding" };
  }
  // Where else it may go, and whether it may stay, nobody knows.
  const unknown = unknownPlacement(observed);
  if (unknown !== undefined && holder.candidate.closed !== BEING_REMOVED) {
    const told = report(proxy, observed, { ...unknown, now });
    return {
      actions: [...told, ...forwards(proxy, holder, delegate, observed, now)],
      outcome: "Scheduling",
    };
  }

  const message = unschedulableMessage(delegate);
  // Its scheduler has had no time while its API server could not be reached.
  const since = Math.max(observed.memory.attempts.get(holder.name)?.since ?? now, holder.reachableSince);
  const makesRoom = (delegate.status?.nominatedNodeName ?? "") !== "";
  const deadline = since + holder.scheduleTimeoutMs + (makesRoom ? PREEMPTION_MS : 0);
  const refusal: Refusal = {
    cluster: holder.name,
    reason: "Unschedulable",
    message: message ?? silentSchedulerMessage(delegate, holder.scheduleTimeoutMs / 1000),
  };
  const withdrawal = withdrawWaiting(holder);
  const ranking = rankFor(proxy, observed, observed.needs?.());
  const forbidden = forbiddenIn(holder, proxy, ranking.refusals);
  if (forbidden !== undefined) {
    return {
      actions: [...report(proxy, observed, { reason: "NotPlaced", message: explain([forbidden]), now }), ...withdrawal],
      outcome: "Withdrawing",
    };
  }
  // Its Cluster is being deleted: nobody would hear any more of what is left there.
  if (holder.candidate.closed === BEING_REMOVED) {
    const refuse: Action = {
      type: "refuse",
      proxyUid: proxy.metadata.uid,
      refusal: { cluster: holder.name, ...BEING_REMOVED },
      nodesVersion: holder.nodesVersion,
      sharedBy: "spec",
    };
    return { actions: [refuse, ...withdrawal], outcome: "Withdrawing" };
  }
  const reports = (earlier: readonly Refusal[] = []): Action[] => {
    const explained = explain([...allRefusals(ranking, observed, now), refusal].reduce(withRefusal, [...earlier]));
    return report(proxy, observed, { reason: "NotPlaced", message: explained, now });
  };
  const others = (members: readonly string[]): string[] => members.filter((name) => name !== holder.name);
  const [roomy] = others(openMembers(ranking.fitting, observed, now));
  // One scheduler for all would end pods of less priority wherever they are. This one has none to end.
  const [full] =
    message !== undefined && !makesRoom && now >= deadline ? others(preemptable(ranking, observed, now)) : [];
  // Where no member had room, the member's scheduler has nothing to find out: the first that has room gets the pod.
  const parked = message !== undefined && !makesRoom && observed.memory.attempts.get(holder.name)?.parked === true;
  if ((roomy ?? full) !== undefined && (now >= deadline || parked)) {
    const { uid: proxyUid } = proxy.metadata;
    // In a full member there is no room to keep: it is parked there.
    const promises: Action[] =
      roomy === undefined
        ? []
        : [{ type: "promise", member: roomy, proxyUid, requests: requestsFor(proxy, observed, roomy) }];
    // What its scheduler has said was told then. Without those that hold no more it would be news each time that it comes round.
    const told = message === undefined ? reports(refusalsSoFar(observed)) : [];
    const { nodesVersion } = holder;
    const refuse: Action = { type: "refuse", proxyUid, refusal, nodesVersion, sharedBy: unschedulableFor(delegate) };
    return { actions: [...promises, refuse, ...withdrawal, ...told], outcome: "Withdrawing" };
  }
  const requeueAt = now < deadline ? deadline : nextExpiry(observed, now);
  // A toleration that is added while it waits may be all that it lacks.
  const told = message === undefined && now < deadline ? [] : reports();
  const actions = [...told, ...forwards(proxy, holder, delegate, observed, now)];
  return { actions, outcome: "Scheduling", ...(requeueAt === undefined ? {} : { requeueAt }) };
}

/** The last refusal of each member that had the pod, whether it still holds or not. */
function refusalsSoFar({ memory }: Observed): Refusal[] {
  return [...memory.attempts.values()].flatMap(({ refusal }) => refusal ?? []);
}

/** What keeps the member's node from pods that are not bound yet, whatever room there is: a scheduler looks each time. */
function forbiddenIn(
  { name: cluster, candidate }: MemberView,
  proxy: Stored<Pod>,
  refusals: readonly Refusal[],
): Refusal | undefined {
  if (candidate.closed === CORDONED) return { cluster, ...CORDONED };
  const tainted = taintRefusal(proxy, candidate);
  if (tainted !== undefined) return { cluster, ...tainted };
  return refusals.find((refusal) => refusal.cluster === cluster && refusal.reason === "NotPermitted");
}

/** Members that refused the pod before this one took it, where the author has not heard of it while the pod waited. */
function announce(proxy: Stored<Pod>, holder: MemberView, observed: Observed): Action[] {
  const { memory } = observed;
  const untold = refusalsSoFar(observed).filter(
    ({ cluster, message }) => cluster !== holder.name && memory.reported?.includes(message) !== true,
  );
  if (untold.length === 0) return [];
  const message = `${explain(untold)}; placed in ${holder.name}`;
  return [{ type: "announce", proxyUid: proxy.metadata.uid, reason: "NotTakenByMember", message }];
}
