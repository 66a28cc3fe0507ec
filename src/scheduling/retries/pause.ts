import type { Refusal } from "../../placement/candidate.ts";
import type { Ranking } from "../../placement/rank.ts";
import { soonest } from "../../runtime/requeue.ts";
import type { Pause, PlaceableMember, PlacementView } from "../placement-view.ts";

/** Returns, by member, why the pod is not tried in it now, and until when; undefined if it may be. Undefined: it may be in all. */
function pauses({ memory, members }: PlacementView, now: number): ((name: string) => Pause | undefined) | undefined {
  // Few of a thousand members refuse a pod, and each is asked about.
  const attempted = new Set(Object.keys(memory.attempts));
  const refusing = new Map<string, PlaceableMember>();
  for (const member of members) {
    if (member.refusedBefore !== undefined || attempted.has(member.name)) {
      refusing.set(member.name, member);
    }
  }
  if (refusing.size === 0 && attempted.size === 0) return undefined;
  return (name) => {
    const { refusal, until = 0, nodesVersion } = memory.attempts[name] ?? {};
    const member = refusing.get(name);
    if (refusal === undefined) return member?.refusedBefore;
    // A change of its nodes may end what its scheduler refused; admission looks at no node.
    const hasNews = refusal.reason === "Unschedulable" && nodesVersion !== member?.nodesVersion;
    return now >= until || hasNews ? undefined : { refusal, until };
  };
}

/** Returns the members without those that refused the pod, or one like it, and are not to be tried yet. */
export function openMembers(names: readonly string[], view: PlacementView, now: number): readonly string[] {
  const pauseIn = pauses(view, now);
  return pauseIn === undefined ? names : names.filter((name) => pauseIn(name) === undefined);
}

/** A member that did not preempt in time waits for its whole backoff, else the pod would move back and forth between two. */
export function preemptable({ preemptable: names }: Ranking, view: PlacementView, now: number): string[] {
  return openMembers(names, view, now).filter((name) => now >= (view.memory.attempts[name]?.until ?? 0));
}

/** Returns where the pod may wait when no member has room, best first: those that may preempt, then those that admit it. */
export function parkable(ranking: Ranking, view: PlacementView, now: number): string[] {
  const pauseIn = pauses(view, now);
  const names = [...preemptable(ranking, view, now), ...ranking.fitting, ...ranking.full];
  return [...new Set(names)].filter((name) => {
    const pause = pauseIn?.(name);
    return pause === undefined || pause.refusal.reason === "Unschedulable";
  });
}

/** Returns placement's refusals, replaced by the members' own where those still hold: they say more. */
export function allRefusals(ranking: Ranking, view: PlacementView, now: number): Refusal[] {
  const own = Object.entries(view.memory.attempts).flatMap(([name, { refusal }]) =>
    refusal === undefined ? [] : name,
  );
  const pauseIn = pauses(view, now);
  // A member that a rule refuses was never asked about pods like this one.
  const open = new Set([...ranking.fitting, ...ranking.full]);
  const others = view.members.map(({ name }) => name).filter((name) => open.has(name) && !own.includes(name));
  return [...own, ...others]
    .flatMap((name) => pauseIn?.(name)?.refusal ?? [])
    .reduce(withRefusal, [...ranking.refusals, ...unknownClusters(view)]);
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
