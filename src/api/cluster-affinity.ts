import { z } from "zod";
import { type LabelExpression, nodeExpressionSchema, requirementOf } from "./label-expressions.ts";
import { selectorMatches } from "./label-selector.ts";

/**
 * A term over Clusters: their labels, and their names as the field `metadata.name`. All must hold; an empty term
 * matches none.
 */
export interface ClusterTerm {
  readonly matchExpressions?: readonly LabelExpression[];
  readonly matchFields?: readonly LabelExpression[];
}

/** A pod's `nodeAffinity` with Clusters in place of nodes. */
export interface ClusterAffinity {
  /** Terms of which at least one must match. */
  readonly requiredDuringSchedulingIgnoredDuringExecution?: { readonly nodeSelectorTerms: readonly ClusterTerm[] };
  /** Terms that raise a Cluster's weight if they match. */
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly {
    readonly weight: number;
    readonly preference: ClusterTerm;
  }[];
}

const NAME_FIELD = "metadata.name";

const termSchema = z.strictObject({
  matchExpressions: z.array(nodeExpressionSchema).max(100).exactOptional(),
  matchFields: z
    .array(nodeExpressionSchema)
    .max(100)
    .check(({ value, issues }) => {
      for (const { key, operator } of value) {
        if (key !== NAME_FIELD || (operator !== "In" && operator !== "NotIn")) {
          issues.push({ code: "custom", message: `only ${NAME_FIELD} with In or NotIn is known`, input: value });
        }
      }
    })
    .exactOptional(),
});

export const clusterAffinitySchema: z.ZodType<ClusterAffinity> = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z
    .strictObject({ nodeSelectorTerms: z.array(termSchema).min(1).max(100) })
    .exactOptional(),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight: z.int32().min(1).max(100), preference: termSchema }))
    .max(100)
    .exactOptional(),
});

interface Selectable {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Reports whether a required term matches the Cluster, or none is written. */
export function affinityAllows(affinity: ClusterAffinity, cluster: Selectable): boolean {
  const terms = affinity.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms === undefined || terms.some((term) => termMatches(term, cluster));
}

/** Returns the sum of the weights of matching preferred terms. */
export function affinityWeight(affinity: ClusterAffinity, cluster: Selectable): number {
  const terms = affinity.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return terms.reduce((sum, { weight, preference }) => sum + (termMatches(preference, cluster) ? weight : 0), 0);
}

/** Reports whether the term has no requirement: Kubernetes lets it match nothing. */
export function isEmptyTerm({
  matchExpressions = [],
  matchFields = [],
}: {
  readonly matchExpressions?: readonly unknown[];
  readonly matchFields?: readonly unknown[];
}): boolean {
  return matchExpressions.length + matchFields.length === 0;
}

function termMatches(term: ClusterTerm, { name, labels }: Selectable): boolean {
  if (isEmptyTerm(term)) return false;
  const { matchExpressions = [], matchFields = [] } = term;
  return (
    selectorMatches(matchExpressions.map(requirementOf), labels) &&
    selectorMatches(matchFields.map(requirementOf), { [NAME_FIELD]: name })
  );
}
