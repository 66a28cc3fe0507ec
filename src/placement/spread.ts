import type { ClusterSpread } from "../api/cluster-spread.ts";
import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { Candidate, Rule } from "./candidate.ts";

/** A constraint with what it is judged by. */
export interface SpreadFacts {
  readonly spread: ClusterSpread;
  /** Pods that count, without the one to be placed, by the name of their member. */
  readonly counts: ReadonlyMap<string, number>;
  /** Whether the pod itself is one of those that count. */
  readonly countsItself: boolean;
  /** The members over which the pod could be spread. */
  readonly eligible: readonly Candidate[];
}

/**
 * One topology spread constraint over Clusters, by kube-scheduler's rules: a domain may be ahead of the one with the fewest
 * pods by maxSkew at most. Where that is only a wish, how far it is ahead is the cost.
 */
export function spreadRule({ spread, counts, countsItself, eligible }: SpreadFacts): Rule {
  const { topologyKey, maxSkew = 1, whenUnsatisfiable = "DoNotSchedule", minDomains = 1 } = spread;
  const domains = new Map<string, number>();
  const domainOf = ({ name, labels }: Candidate): string | undefined =>
    topologyKey === VIRTUAL_NODE_LABEL ? name : labels[topologyKey];
  for (const candidate of eligible) {
    const value = domainOf(candidate);
    if (value !== undefined) domains.set(value, (domains.get(value) ?? 0) + (counts.get(candidate.name) ?? 0));
  }
  const fewest = domains.size < minDomains ? 0 : Math.min(...domains.values());
  const skewIn = (value: string): number => (domains.get(value) ?? 0) + (countsItself ? 1 : 0) - fewest;
  if (whenUnsatisfiable === "ScheduleAnyway") {
    return {
      cost: (candidate) => {
        const value = domainOf(candidate);
        return value === undefined || !domains.has(value) ? Number.MAX_VALUE : skewIn(value);
      },
    };
  }
  return {
    refusal: (candidate) => {
      const value = domainOf(candidate);
      if (value === undefined) return { reason: "Spread", message: `has no label ${topologyKey} to spread over` };
      if (!domains.has(value) || skewIn(value) <= maxSkew) return undefined;
      const ahead = `${topologyKey}=${value} has ${domains.get(value)}, the fewest is ${fewest}, and maxSkew is ${maxSkew}`;
      return { reason: "Spread", message: `one more pod would be too many: ${ahead}` };
    },
  };
}
