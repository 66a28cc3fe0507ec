import type { Refusal } from "../placement/candidate.ts";
import type { Ranking } from "../placement/rank.ts";
import { soonest } from "../runtime/requeue.ts";
import type { PlaceableMember, PlacementView } from "./placement-view.ts";

export function openMembers(names: readonly string[], view: PlacementView, now: number): string[] {
  return names.filter((name) => !isRuledOut(view, name, now));
}

/** Reports whether the member refused the pod, or one like it, and is not to be tried yet. */
function isRuledOut(view: PlacementView, name: string, now: number): boolean {
  const attempt = view.memory.attempts[name];
  const member = memberNamed(view, name);
  if (attempt?.refusal === undefined) return member?.refusedBefore !== undefined;
  if (attempt.until === undefined || now >= attempt.until) return false;
  // A change of its nodes may end what its scheduler refused; admission looks at no node.
  if (attempt.refusal.reason !== "Unschedulable") return true;
  return attempt.nodesVersion === member?.nodesVersion;
}

/** A member that did not preempt in time waits for its whole backoff, else the pod would move back and forth between two. */
export function preemptable({ preemptable: names }: Ranking, view: PlacementView, now: number): string[] {
  return names.filter((name) => {
    const { refusal, until = 0 } = view.memory.attempts[name] ?? {};
    return refusal === undefined ? !isRuledOut(view, name, now) : now >= until;
  });
}

/** Returns where the pod may wait when no member has room, best first: those that may preempt, then those that admit it. */
export function parkable(ranking: Ranking, view: PlacementView, now: number): string[] {
  const admits = (name: string): boolean => {
    const { refusal } = view.memory.attempts[name] ?? {};
    const { reason } = refusal ?? memberNamed(view, name)?.refusedBefore?.refusal ?? {};
    return reason === "Unschedulable" || !isRuledOut(view, name, now);
  };
  const names = [...preemptable(ranking, view, now), ...ranking.fitting, ...ranking.full];
  return [...new Set(names)].filter(admits);
}

/** Returns placement's refusals, replaced by the members' own where those still hold: they say more. */
export function allRefusals(ranking: Ranking, view: PlacementView, now: number): Refusal[] {
  let refusals = [...ranking.refusals, ...unknownClusters(view)];
  for (const [name, { refusal }] of Object.entries(view.memory.attempts)) {
    if (refusal !== undefined && isRuledOut(view, name, now)) refusals = withRefusal(refusals, refusal);
  }
  // A member that a rule refuses was never asked about pods like this one.
  const open = new Set([...ranking.fitting, ...ranking.full]);
  for (const { name, refusedBefore } of view.members) {
    if (!open.has(name) || view.memory.attempts[name]?.refusal !== undefined) continue;
    if (refusedBefore !== undefined) refusals = withRefusal(refusals, refusedBefore.refusal);
  }
  return refusals;
}

export function withRefusal(refusals: readonly Refusal[], refusal: Refusal): Refusal[] {
  return [...refusals.filter(({ cluster }) => cluster !== refusal.cluster), refusal];
}

/** Returns when the next member may be tried again; epoch ms. */
export function nextRetry({ memory, members }: PlacementView, now: number): number | undefined {
  const own = Object.values(memory.attempts).map(({ until }) => until ?? 0);
  const others = members.flatMap(({ refusedBefore, learntUntil = 0 }) => [refusedBefore?.until ?? 0, learntUntil]);
  return soonest(...[...own, ...others].filter((until) => until > now));
}

/** A misspelt name must not look like a choice that was made. */
function unknownClusters({ named = [], members }: PlacementView): Refusal[] {
  return named
    .filter((name) => !members.some((member) => member.name === name))
    .map((cluster) => ({ cluster, reason: "UnknownCluster", message: "no Cluster of that name has joined" }));
}

function memberNamed({ members }: PlacementView, name: string): PlaceableMember | undefined {
  return members.find((member) => member.name === name);
}
