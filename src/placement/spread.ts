import type { ClusterSpread } from "../api/cluster-spread.ts";
import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { Candidate, Rule } from "./candidate.ts";
import { noTopology, skewed } from "./refusal-messages.ts";

export interface SpreadFacts {
  readonly spread: ClusterSpread;
  /** Counted pods by member, without the one to place. */
  readonly counts: ReadonlyMap<string, number>;
  readonly countsItself: boolean;
  readonly eligible: readonly Candidate[];
}

/** Applies a spread constraint like kube-scheduler: a domain may exceed the smallest by maxSkew; a soft one scores by the excess. */
export function spreadRule({ spread, counts, countsItself, eligible }: SpreadFacts): Rule {
  const { topologyKey, maxSkew = 1, whenUnsatisfiable = "DoNotSchedule", minDomains = 1 } = spread;
  const domains = new Map<string, number>();
  const domainOf = ({ name, labels }: Candidate): string | undefined =>
    topologyKey === VIRTUAL_NODE_LABEL ? name : Object.hasOwn(labels, topologyKey) ? labels[topologyKey] : undefined;
  for (const candidate of eligible) {
    const value = domainOf(candidate);
    if (value !== undefined) domains.set(value, (domains.get(value) ?? 0) + (counts.get(candidate.name) ?? 0));
  }
  const fewest = domains.size < minDomains ? 0 : Math.min(...domains.values());
  const skewIn = (value: string): number => (domains.get(value) ?? 0) + (countsItself ? 1 : 0) - fewest;
  if (whenUnsatisfiable === "ScheduleAnyway") {
    return {
      score: (candidate) => {
        const value = domainOf(candidate);
        return value === undefined || !domains.has(value) ? -Number.MAX_VALUE : -skewIn(value);
      },
    };
  }
  return {
    filter: (candidate) => {
      const value = domainOf(candidate);
      if (value === undefined) return noTopology(topologyKey);
      if (!domains.has(value) || skewIn(value) <= maxSkew) return undefined;
      return skewed({ topologyKey, value, pods: domains.get(value) ?? 0, fewest, maxSkew });
    },
  };
}
