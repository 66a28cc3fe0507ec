import { z } from "zod";
import type { RequestedPlacement } from "./annotations.ts";
import { type ClusterAffinity, clusterAffinitySchema } from "./cluster-affinity.ts";
import { type ClusterSpread, clusterSpreadsSchema } from "./cluster-spread.ts";
import { defined } from "./defined.ts";
import type { ObjectMeta } from "./kubernetes.ts";
import { type LabelSelector, labelSelectorSchema, selectorOf } from "./label-expressions.ts";

/** Name of the only object that is read. */
export const PLACEMENT_DEFAULTS_NAME = "default";

/** Defaults by annotation key, for pods and namespaces that set none. */
export interface PlacementDefaultsSpec {
  readonly clusterSelector?: LabelSelector;
  readonly clusterAffinity?: ClusterAffinity;
  readonly clusterSpread?: readonly ClusterSpread[];
}

/** An operator's defaults of placement for all namespaces. Authors may replace them. */
export interface PlacementDefaults {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: PlacementDefaultsSpec;
}

export function defaultPlacement({
  clusterSelector,
  clusterAffinity,
  clusterSpread,
}: PlacementDefaultsSpec): RequestedPlacement {
  return {
    ...(clusterSelector === undefined
      ? {}
      : { selector: selectorOf(clusterSelector), selectorText: "the clusterSelector of PlacementDefaults" }),
    ...defined({ affinity: clusterAffinity, spread: clusterSpread }),
  };
}

const nameRule = {
  rule: `self.metadata.name == '${PLACEMENT_DEFAULTS_NAME}'`,
  message: `there is one object of this kind, and its name is ${PLACEMENT_DEFAULTS_NAME}`,
};

/** The schema from which the CustomResourceDefinition is generated. */
export const placementDefaultsSchema: z.ZodType<Pick<PlacementDefaults, "spec">> = z
  .object({
    spec: z
      .object({
        clusterSelector: labelSelectorSchema
          .describe("As the annotation legation.dev/cluster-selector.")
          .exactOptional(),
        clusterAffinity: clusterAffinitySchema
          .describe("As the annotation legation.dev/cluster-affinity.")
          .exactOptional(),
        clusterSpread: clusterSpreadsSchema.describe("As the annotation legation.dev/cluster-spread.").exactOptional(),
      })
      .describe("Defaults by key, for pods and namespaces that set none."),
  })
  .describe(
    "Defaults of placement for all namespaces. Authors may replace them; a Cluster's own spec says what is allowed.",
  )
  .meta({ "x-kubernetes-validations": [nameRule] });
