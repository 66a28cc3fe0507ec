import { z } from "zod";
import { type LabelExpression, nodeExpressionSchema, requirementOf } from "./label-expressions.ts";
import { selectorMatches } from "./label-selector.ts";

/** Clusters by their labels, and by their names as the field `metadata.name`; both must hold. An empty term matches none. */
export interface ClusterTerm {
  readonly matchExpressions?: readonly LabelExpression[];
  readonly matchFields?: readonly LabelExpression[];
}

/** A pod's `nodeAffinity`, field by field, with Clusters in place of nodes. */
export interface ClusterAffinity {
  /** Terms, any one of which must match. */
  readonly requiredDuringSchedulingIgnoredDuringExecution?: { readonly nodeSelectorTerms: readonly ClusterTerm[] };
  /** The sum of the weights of the terms that match is what a Cluster is worth. */
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

/** The schema of `legation.dev/cluster-affinity`. */
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

/** The weights of the preferred terms that match the Cluster, added up. */
export function affinityWeight(affinity: ClusterAffinity, cluster: Selectable): number {
  const terms = affinity.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return terms.reduce((sum, { weight, preference }) => sum + (termMatches(preference, cluster) ? weight : 0), 0);
}

/** A term without a requirement: Kubernetes has it match nothing. */
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
