import { PREFERENCES_ANNOTATION } from "../api/keys.ts";
import { preferencesFor, type SchedulingPreferences } from "../api/preferences.ts";
import type { Rule } from "./candidate.ts";
import type { Replicas } from "./division.ts";
import type { DivisionOrder } from "./division-order.ts";
import { nextInUpdate } from "./update-division.ts";

export interface DivisionRuleInput {
  readonly preferences: SchedulingPreferences;
  /** Of the clusters that may have replicas now, each up to what it has room for. */
  readonly order: DivisionOrder;
  /** The workload's replicas by cluster, without the one that is to be placed. */
  readonly placed: Replicas;
  /** What other owners of the same workload have: the ReplicaSets of a Deployment or Rollout during an update. Absent: nothing. */
  readonly others?: Others;
}

/** Replicas of one workload that other owners have. */
export interface Others {
  /** The cluster of each, in the order in which they will go. */
  readonly leaving: readonly string[];
  /** How many replicas come and go at once. */
  readonly atOnce: number;
  /** The clusters that may have replicas now. */
  readonly clusters: readonly string[];
  /** Those of them that have room. */
  readonly roomy: readonly string[];
}

/**
 * Places one replica so that the division is kept: in the cluster whose next replica comes first in the order. So the
 * first n are the division of n, whatever n becomes, and no total needs to be known. Beside other owners of the same
 * workload it is the division of all together that is kept.
 */
export function divisionRule({ preferences, order, placed, others }: DivisionRuleInput): Rule {
  let all = 0;
  for (const cluster in placed) all += placed[cluster] ?? 0;
  const best = others === undefined ? undefined : nextBeside(others, { preferences, order, placed });
  return {
    concern: PREFERENCES_ANNOTATION,
    // What goes elsewhere would stay there.
    awaits: true,
    refusal: ({ name }) => {
      const message = limitReached(preferences, name, placed[name] ?? 0);
      return message === undefined ? undefined : { reason: "NotPreferred", message };
    },
    cost: ({ name }) => {
      if (name === best) return 0;
      const next = (placed[name] ?? 0) + 1;
      // Among one more than all there are, some cluster has one that it does not have yet: the best is always found.
      const position = order.position(name, next, all + 1);
      return position ?? all + 1 + next / Math.max(1, preferencesFor(preferences, name)?.weight ?? 0);
    },
  };
}

function nextBeside(
  { leaving, atOnce, clusters, roomy }: Others,
  { preferences, order, placed }: DivisionRuleInput,
): string | undefined {
  const choices = roomy.filter((cluster) => limitReached(preferences, cluster, placed[cluster] ?? 0) === undefined);
  return nextInUpdate({ order, clusters, choices, own: placed, leaving, atOnce });
}

/** Why the cluster gets no more replicas of a workload of which it has so many; undefined when it may. */
function limitReached(preferences: SchedulingPreferences, cluster: string, has: number): string | undefined {
  const own = preferencesFor(preferences, cluster);
  if (own === undefined) return `${PREFERENCES_ANNOTATION} does not name it`;
  const { weight, minReplicas, maxReplicas } = own;
  if (maxReplicas !== undefined && has >= maxReplicas) return `has ${has} of them, its maxReplicas`;
  if (weight > 0 || has < minReplicas) return undefined;
  return minReplicas === 0
    ? `its weight in ${PREFERENCES_ANNOTATION} is 0`
    : `has its minReplicas of ${minReplicas}, and its weight is 0`;
}
