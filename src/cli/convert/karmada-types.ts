import { z } from "zod";
import { type LabelSelector, labelSelectorSchema } from "../../api/label-expressions.ts";

/** Selects ordinary objects. */
interface ResourceSelector {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly labelSelector?: LabelSelector | undefined;
}

/** Selects clusters. */
export interface KarmadaAffinity {
  readonly clusterNames?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
  readonly labelSelector?: LabelSelector | undefined;
  readonly fieldSelector?:
    | {
        readonly matchExpressions: readonly {
          readonly key: string;
          readonly operator: "In" | "NotIn";
          readonly values: readonly string[];
        }[];
      }
    | undefined;
}

/** The read fields of a policy's placement. */
export interface KarmadaPlacement {
  readonly clusterAffinity?: KarmadaAffinity | undefined;
  readonly clusterAffinities: readonly KarmadaAffinity[];
  readonly clusterTolerations: readonly unknown[];
  readonly spreadConstraints: readonly {
    readonly spreadByField?: string | undefined;
    readonly spreadByLabel?: string | undefined;
    readonly maxGroups?: number | undefined;
  }[];
  readonly workloadAffinity?: unknown;
  readonly replicaScheduling?:
    | {
        readonly replicaSchedulingType: "Duplicated" | "Divided";
        readonly replicaDivisionPreference: "Aggregated" | "Weighted";
        readonly weightPreference?:
          | {
              readonly staticWeightList: readonly {
                readonly targetCluster: KarmadaAffinity;
                readonly weight: number;
              }[];
              readonly dynamicWeight?: string | undefined;
            }
          | undefined;
      }
    | undefined;
}

/** The read fields of a PropagationPolicy. */
export interface PropagationSpec {
  readonly resourceSelectors: readonly ResourceSelector[];
  readonly priority: number;
  readonly propagateDeps: boolean;
  readonly placement: KarmadaPlacement;
  readonly conflictResolution: string;
  readonly preserveResourcesOnDeletion: boolean;
  readonly [field: string]: unknown;
}

type Operator = "add" | "replace" | "remove";
interface WordsOverrider {
  readonly containerName: string;
  readonly operator: Operator;
  readonly value: readonly string[];
}

/** Differences of an OverridePolicy, by the kinds that Karmada knows. */
export interface Overriders {
  readonly plaintext: readonly { readonly path: string; readonly operator: Operator; readonly value?: unknown }[];
  readonly imageOverrider: readonly {
    readonly predicate?: { readonly path: string } | undefined;
    readonly component: "Registry" | "Repository" | "Tag";
    readonly operator: Operator;
    readonly value: string;
  }[];
  readonly commandOverrider: readonly WordsOverrider[];
  readonly argsOverrider: readonly WordsOverrider[];
  readonly labelsOverrider: readonly unknown[];
  readonly annotationsOverrider: readonly unknown[];
  readonly fieldOverrider: readonly { readonly fieldPath: string }[];
}

/** The read fields of an OverridePolicy. */
export interface OverrideSpec {
  readonly resourceSelectors?: readonly ResourceSelector[] | undefined;
  readonly overrideRules: readonly {
    readonly targetCluster?: KarmadaAffinity | undefined;
    readonly overriders: Overriders;
  }[];
  readonly targetCluster?: KarmadaAffinity | undefined;
  readonly overriders?: Overriders | undefined;
}

const resourceSelector: z.ZodType<ResourceSelector> = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string().optional(),
  labelSelector: labelSelectorSchema.optional(),
});
const fieldRequirement = z.looseObject({
  key: z.string(),
  operator: z.enum(["In", "NotIn"]),
  values: z.array(z.string()).default([]),
});
const affinity: z.ZodType<KarmadaAffinity> = z.looseObject({
  clusterNames: z.array(z.string()).optional(),
  exclude: z.array(z.string()).optional(),
  labelSelector: labelSelectorSchema.optional(),
  fieldSelector: z.looseObject({ matchExpressions: z.array(fieldRequirement).default([]) }).optional(),
});
/** A PropagationPolicy or ClusterPropagationPolicy, as far as it is read. */
export const propagationSchema: z.ZodType<{ readonly spec: PropagationSpec }> = z.looseObject({
  spec: z.looseObject({
    resourceSelectors: z.array(resourceSelector),
    priority: z.number().default(0),
    propagateDeps: z.boolean().default(false),
    placement: z
      .looseObject({
        clusterAffinity: affinity.optional(),
        clusterAffinities: z.array(affinity).default([]),
        clusterTolerations: z.array(z.unknown()).default([]),
        spreadConstraints: z
          .array(
            z.looseObject({
              spreadByField: z.string().optional(),
              spreadByLabel: z.string().optional(),
              maxGroups: z.number().optional(),
            }),
          )
          .default([]),
        workloadAffinity: z.unknown().optional(),
        replicaScheduling: z
          .looseObject({
            replicaSchedulingType: z.enum(["Duplicated", "Divided"]).default("Divided"),
            replicaDivisionPreference: z.enum(["Aggregated", "Weighted"]).default("Weighted"),
            weightPreference: z
              .looseObject({
                staticWeightList: z.array(z.looseObject({ targetCluster: affinity, weight: z.number() })).default([]),
                dynamicWeight: z.string().optional(),
              })
              .optional(),
          })
          .optional(),
      })
      .default({ clusterAffinities: [], clusterTolerations: [], spreadConstraints: [] }),
    conflictResolution: z.string().default("Abort"),
    preserveResourcesOnDeletion: z.boolean().default(false),
  }),
});
const operator = z.enum(["add", "replace", "remove"]);
const overriders: z.ZodType<Overriders> = z.looseObject({
  plaintext: z.array(z.looseObject({ path: z.string(), operator, value: z.unknown().optional() })).default([]),
  imageOverrider: z
    .array(
      z.looseObject({
        predicate: z.looseObject({ path: z.string() }).optional(),
        component: z.enum(["Registry", "Repository", "Tag"]),
        operator,
        value: z.string().default(""),
      }),
    )
    .default([]),
  commandOverrider: z
    .array(z.looseObject({ containerName: z.string(), operator, value: z.array(z.string()).default([]) }))
    .default([]),
  argsOverrider: z
    .array(z.looseObject({ containerName: z.string(), operator, value: z.array(z.string()).default([]) }))
    .default([]),
  labelsOverrider: z.array(z.unknown()).default([]),
  annotationsOverrider: z.array(z.unknown()).default([]),
  fieldOverrider: z.array(z.looseObject({ fieldPath: z.string() })).default([]),
});
/** An OverridePolicy or ClusterOverridePolicy, as far as it is read. */
export const overrideSchema: z.ZodType<{ readonly spec: OverrideSpec }> = z.looseObject({
  spec: z.looseObject({
    resourceSelectors: z.array(resourceSelector).optional(),
    overrideRules: z.array(z.looseObject({ targetCluster: affinity.optional(), overriders })).default([]),
    // Deprecated since Karmada 1.0.
    targetCluster: affinity.optional(),
    overriders: overriders.optional(),
  }),
});
