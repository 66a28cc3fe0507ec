import { PREFERENCES_ANNOTATION } from "../api/keys.ts";
import { preferencesFor, type SchedulingPreferences } from "../api/preferences.ts";
import type { Rule } from "./candidate.ts";
import type { Replicas } from "./division.ts";
import type { DivisionOrder } from "./division-order.ts";
import { maxReplicasReached, notPreferred, type Why, weightIsZero } from "./refusal-messages.ts";
import { nextInUpdate } from "./update-division.ts";

export interface DivisionRuleInput {
  readonly preferences: SchedulingPreferences;
  /** The division over clusters that may have replicas now, each up to its room. */
  readonly order: DivisionOrder;
  /** The workload's replicas by cluster, without the one to place. */
  readonly placed: Replicas;
  /** ReplicaSets of a Deployment or Rollout during an update. */
  readonly others?: Others;
}

export interface Others {
  readonly leaving: readonly string[];
  readonly atOnce: number;
  readonly clusters: readonly string[];
  readonly roomy: readonly string[];
}

/** Gives a replica to the cluster whose next one comes first. The first n are the division of n, so no total is needed. */
export function divisionRule({ preferences, order, placed, others }: DivisionRuleInput): Rule {
  let all = 0;
  for (const cluster in placed) all += placed[cluster] ?? 0;
  const best = others === undefined ? undefined : nextBeside(others, { preferences, order, placed });
  return {
    concern: PREFERENCES_ANNOTATION,
    // A replica placed elsewhere would stay there.
    awaits: true,
    filter: ({ name }) => limitReached(preferences, name, placed[name] ?? 0),
    score: ({ name }) => {
      if (name === best) return 0;
      const next = (placed[name] ?? 0) + 1;
      // One more than all replicas always leaves a cluster that lacks one.
      const position = order.position(name, next, all + 1);
      return -(position ?? all + 1 + next / Math.max(1, preferencesFor(preferences, name)?.weight ?? 0));
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

export function limitReached(preferences: SchedulingPreferences, cluster: string, has: number): Why | undefined {
  const own = preferencesFor(preferences, cluster);
  if (own === undefined) return notPreferred();
  const { weight, minReplicas, maxReplicas } = own;
  if (maxReplicas !== undefined && has >= maxReplicas) return maxReplicasReached(has);
  return weight > 0 || has < minReplicas ? undefined : weightIsZero(minReplicas);
}
