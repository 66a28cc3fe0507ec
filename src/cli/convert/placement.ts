import type { ClusterAffinity, ClusterTerm } from "../../api/cluster-affinity.ts";
import { CLUSTER_AFFINITY_ANNOTATION, CLUSTER_SELECTOR_ANNOTATION, CLUSTERS_ANNOTATION } from "../../api/keys.ts";
import type { LabelExpression, LabelSelector } from "../../api/label-expressions.ts";

/** A choice of clusters, all of whose parts must hold. Without parts: any cluster. */
export interface ChosenClusters {
  readonly names?: readonly string[] | undefined;
  readonly excluded?: readonly string[] | undefined;
  readonly labels?: LabelSelector | undefined;
}

/** Returns the annotations for one of several choices, an earlier one preferred. None: any cluster. */
export function placementAnnotations(choices: readonly ChosenClusters[]): Record<string, string> {
  const [first = {}, ...others] = choices;
  if (others.length === 0) return annotationsOf(first);
  const terms = choices.map(termOf);
  // A term that is empty here selects every cluster, and one of an affinity none.
  const required = terms.some(isEmpty)
    ? {}
    : { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
  const preferred = terms
    .map((preference, index) => ({ weight: Math.max(1, Math.floor(100 / 2 ** index)), preference }))
    .filter(({ preference }) => !isEmpty(preference));
  const affinity: ClusterAffinity = { ...required, preferredDuringSchedulingIgnoredDuringExecution: preferred };
  return { [CLUSTER_AFFINITY_ANNOTATION]: JSON.stringify(affinity) };
}

function annotationsOf({ names, excluded = [], labels = {} }: ChosenClusters): Record<string, string> {
  const expressions = expressionsOf(labels);
  const named = names?.filter((name) => !excluded.includes(name));
  if (named === undefined && excluded.length > 0) {
    const affinity: ClusterAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [termOf({ excluded, labels })] },
    };
    return { [CLUSTER_AFFINITY_ANNOTATION]: JSON.stringify(affinity) };
  }
  return {
    ...(named === undefined ? {} : { [CLUSTERS_ANNOTATION]: named.join(",") }),
    ...(expressions.length === 0 ? {} : { [CLUSTER_SELECTOR_ANNOTATION]: selectorText(labels) }),
  };
}

function termOf({ names, excluded = [], labels = {} }: ChosenClusters): ClusterTerm {
  const matchExpressions = expressionsOf(labels);
  const matchFields: LabelExpression[] = [
    ...(names === undefined ? [] : [{ key: "metadata.name", operator: "In" as const, values: names }]),
    ...(excluded.length === 0 ? [] : [{ key: "metadata.name", operator: "NotIn" as const, values: excluded }]),
  ];
  return {
    ...(matchExpressions.length === 0 ? {} : { matchExpressions }),
    ...(matchFields.length === 0 ? {} : { matchFields }),
  };
}

function isEmpty({ matchExpressions = [], matchFields = [] }: ClusterTerm): boolean {
  return matchExpressions.length + matchFields.length === 0;
}

function expressionsOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): LabelExpression[] {
  const equal = Object.entries(matchLabels).map(([key, value]) => ({ key, operator: "In" as const, values: [value] }));
  return [...equal, ...matchExpressions];
}

/** Writes a selector in the grammar of `kubectl get -l`. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  return [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) => {
      if (operator === "Exists") return key;
      if (operator === "DoesNotExist") return `!${key}`;
      return `${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`;
    }),
  ].join(",");
}
