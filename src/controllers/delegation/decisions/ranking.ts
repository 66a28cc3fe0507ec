import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { Amounts } from "../../../api/quantity.ts";
import type { Refusal, Rule } from "../../../placement/candidate.ts";
import { type RankInput, type Ranking, rank } from "../../../placement/rank.ts";
import { podRequests } from "../../../placement/requests.ts";
import type { Attempt, Observed } from "./model.ts";
import { type Needs, refusedIn } from "./needs.ts";

/** What `decidePlacing` decides by, for who explains it. */
export function placementOf(
  proxy: Stored<Pod>,
  observed: Observed,
  now: number,
): { readonly input: RankInput; readonly ranking: Ranking } {
  const input = rankInput(proxy, observed, observed.needs?.());
  const ranking = rank(input);
  return { input, ranking: { ...ranking, refusals: allRefusals(ranking, observed, now) } };
}

export function rankFor(proxy: Stored<Pod>, observed: Observed, needs?: Needs): Ranking {
  return rank(rankInput(proxy, observed, needs));
}

export function requestsFor(proxy: Stored<Pod>, { members, requestsIn }: Observed, member: string): Amounts {
  const candidate = members.find(({ name }) => name === member)?.candidate;
  return (candidate === undefined ? undefined : requestsIn?.(candidate)) ?? podRequests(proxy);
}

function rankInput(proxy: Stored<Pod>, observed: Observed, needs?: Needs): RankInput {
  const { members, excludes, lacks, rules, requestsIn } = observed;
  const selection: Rule = {
    refusal: (candidate) => {
      const message = excludes(candidate) ?? lacks?.(candidate) ?? refusedIn(needs, candidate.name);
      return message === undefined ? undefined : { reason: "NotSelected", message };
    },
  };
  const { priority = 0, preemptionPolicy } = proxy.spec ?? {};
  return {
    requests: podRequests(proxy),
    ...(preemptionPolicy === "Never" ? {} : { priority }),
    ...(requestsIn === undefined ? {} : { requestsIn }),
    rules: [selection, ...(rules?.() ?? [])],
    candidates: members.map(({ candidate }) => candidate),
  };
}

/** Those members that no earlier attempt rules out for now. */
export function openMembers(names: readonly string[], observed: Observed, now: number): string[] {
  return names.filter((name) => !ruledOut(observed, name, now));
}

/**
 * Full members that may make room for the pod. One that has not done so in time is asked again when its refusal is over, and no
 * sooner when its nodes change: with two of them the pod would go to and fro.
 */
export function preemptable({ preemptable: names }: Ranking, observed: Observed, now: number): string[] {
  return names.filter((name) => {
    const { refusal, until = 0 } = observed.memory.attempts.get(name) ?? {};
    return refusal === undefined ? !ruledOut(observed, name, now) : now >= until;
  });
}

/** Where the pod may wait when no member has room, the best first: one that may make room, and that its API server lets it into. */
export function parkable(ranking: Ranking, observed: Observed, now: number): string[] {
  const soft = (name: string): boolean => {
    const { refusal } = observed.memory.attempts.get(name) ?? {};
    const { reason } = refusal ?? observed.refusedBefore?.(name)?.refusal ?? {};
    return reason === "Unschedulable" || !ruledOut(observed, name, now);
  };
  const names = [...preemptable(ranking, observed, now), ...ranking.fitting, ...ranking.full];
  return [...new Set(names)].filter(soft);
}

function ruledOut(observed: Observed, name: string, now: number): boolean {
  const attempt = observed.memory.attempts.get(name);
  if (attempt?.refusal === undefined) return observed.refusedBefore?.(name) !== undefined;
  if (attempt.until === undefined || now >= attempt.until) return false;
  // Admission looks at no node.
  if (attempt.refusal.reason !== "Unschedulable") return true;
  const member = observed.members.find((view) => view.name === name);
  return attempt.nodesVersion === member?.nodesVersion;
}

/** Placement's refusals and those of the members themselves, which say more about the same member. */
export function allRefusals(ranking: Ranking, observed: Observed, now: number): Refusal[] {
  let refusals = [...ranking.refusals, ...unknownClusters(observed)];
  for (const [name, { refusal }] of observed.memory.attempts) {
    if (refusal !== undefined && ruledOut(observed, name, now)) refusals = withRefusal(refusals, refusal);
  }
  // The members that rules refuse have said nothing of this pod.
  const open = new Set([...ranking.fitting, ...ranking.full]);
  for (const { name } of observed.members) {
    if (!open.has(name) || observed.memory.attempts.get(name)?.refusal !== undefined) continue;
    const { refusal } = observed.refusedBefore?.(name) ?? {};
    if (refusal !== undefined) refusals = withRefusal(refusals, refusal);
  }
  return refusals;
}

/** A name that is written wrong would otherwise look like a choice. */
function unknownClusters({ named = [], members }: Observed): Refusal[] {
  return named
    .filter((name) => !members.some((member) => member.name === name))
    .map((cluster) => ({ cluster, reason: "UnknownCluster", message: "no Cluster of that name has joined" }));
}

export function withRefusal(refusals: readonly Refusal[], refusal: Refusal): Refusal[] {
  return [...refusals.filter(({ cluster }) => cluster !== refusal.cluster), refusal];
}

export function nextExpiry({ memory, members, refusedBefore }: Observed, now: number): number | undefined {
  const own = [...memory.attempts.values()].map(({ until }: Attempt) => until ?? 0);
  const others = members.map(({ name }) => refusedBefore?.(name)?.until ?? 0);
  const times = [...own, ...others].filter((until) => until > now);
  return times.length === 0 ? undefined : Math.min(...times);
}
