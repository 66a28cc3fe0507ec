import { type ClusterAffinity, type ClusterTerm, isEmptyTerm } from "../../api/cluster-affinity.ts";
import { defined } from "../../api/defined.ts";
import { CLUSTER_AFFINITY_ANNOTATION, CLUSTER_SELECTOR_ANNOTATION, CLUSTERS_ANNOTATION } from "../../api/keys.ts";
import type { LabelExpression, LabelSelector } from "../../api/label-expressions.ts";

/** A choice of clusters, all of whose parts must hold. */
export interface ChosenClusters {
  /** Undefined: of any name that is not excluded. */
  readonly names?: readonly string[] | undefined;
  readonly excluded: readonly string[];
  readonly labels: readonly LabelExpression[];
}

export function chosenClusters(
  names: readonly string[] | undefined,
  excluded: readonly string[],
  selectors: readonly LabelSelector[],
): ChosenClusters {
  const labels = selectors.flatMap(({ matchLabels = {}, matchExpressions = [] }): LabelExpression[] => [
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: "In" as const, values: [value] })),
    ...matchExpressions,
  ]);
  if (names === undefined) return { excluded, labels };
  return { names: names.filter((name) => !excluded.includes(name)), excluded: [], labels };
}

/** Returns the annotations for one of several choices, an earlier one preferred. None: any cluster. */
export function placementAnnotations(choices: readonly ChosenClusters[]): Record<string, string> {
  const [first, ...others] = choices;
  if (first === undefined) return {};
  if (others.length > 0 || first.excluded.length > 0) {
    return { [CLUSTER_AFFINITY_ANNOTATION]: JSON.stringify(affinityOf(choices.map(termOf))) };
  }
  return defined({
    [CLUSTERS_ANNOTATION]: first.names?.join(","),
    [CLUSTER_SELECTOR_ANNOTATION]: first.labels.length === 0 ? undefined : selectorText(first.labels),
  });
}

function affinityOf(terms: readonly ClusterTerm[]): ClusterAffinity {
  const preferred = terms.map((preference, index) => ({
    weight: Math.max(1, Math.floor(100 / 2 ** index)),
    preference,
  }));
  return defined({
    // A choice without requirements selects every cluster, and such a term none.
    requiredDuringSchedulingIgnoredDuringExecution: terms.some(isEmptyTerm) ? undefined : { nodeSelectorTerms: terms },
    preferredDuringSchedulingIgnoredDuringExecution:
      terms.length === 1 ? undefined : preferred.filter(({ preference }) => !isEmptyTerm(preference)),
  });
}

function termOf({ names, excluded, labels }: ChosenClusters): ClusterTerm {
  const named = (operator: "In" | "NotIn", values: readonly string[]): object => ({
    matchFields: [{ key: "metadata.name", operator, values }],
  });
  return {
    ...(labels.length === 0 ? {} : { matchExpressions: labels }),
    ...(names === undefined ? {} : named("In", names)),
    ...(excluded.length === 0 ? {} : named("NotIn", excluded)),
  };
}

/** Writes a selector in the grammar of `kubectl get -l`. */
export function selectorText(labels: readonly LabelExpression[]): string {
  const requirements = labels.map(({ key, operator, values = [] }) => {
    if (operator === "Exists") return key;
    if (operator === "DoesNotExist") return `!${key}`;
    if (operator === "In" && values.length === 1) return `${key}=${values[0]}`;
    return `${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`;
  });
  return requirements.join(",");
}
