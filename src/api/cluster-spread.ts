import { z } from "zod";
import { type LabelSelector, labelSelectorSchema } from "./label-expressions.ts";
import { labelKeyProblem } from "./label-selector.ts";

/** A pod's `topologySpreadConstraint` over Clusters in place of nodes. */
export interface ClusterSpread {
  /** Label of Clusters, or the virtual nodes' label with their names. Members with one value are one domain. */
  readonly topologyKey: string;
  /** The excess of pods over the smallest domain; default 1. */
  readonly maxSkew?: number;
  /** Default DoNotSchedule. */
  readonly whenUnsatisfiable?: "DoNotSchedule" | "ScheduleAnyway";
  /** The smallest count is 0 with fewer domains than this; default 1. */
  readonly minDomains?: number;
  /** Pods of the namespace to count; default: those of the pod's controller. */
  readonly labelSelector?: LabelSelector;
  /**
   * Honor leaves out members whose nodes the pod cannot select; Ignore counts also those the author excludes.
   * Default: neither. A pod's own constraints default to Honor, as in Kubernetes.
   */
  readonly nodeAffinityPolicy?: "Honor" | "Ignore";
  /** Honor leaves out Clusters that are closed or have untolerated taints. Default Ignore. */
  readonly nodeTaintsPolicy?: "Honor" | "Ignore";
}

const spreadSchema: z.ZodType<ClusterSpread> = z
  .strictObject({
    topologyKey: z
      .string()
      .min(1)
      .max(317)
      .check(({ value, issues }) => {
        const problem = labelKeyProblem(value);
        if (problem !== undefined)
          issues.push({ code: "custom", message: `is no label key: ${problem}`, input: value });
      }),
    maxSkew: z.int32().min(1).exactOptional(),
    whenUnsatisfiable: z.enum(["DoNotSchedule", "ScheduleAnyway"]).exactOptional(),
    minDomains: z.int32().min(1).exactOptional(),
    labelSelector: labelSelectorSchema.exactOptional(),
    nodeTaintsPolicy: z.enum(["Honor", "Ignore"]).exactOptional(),
  })
  .check(({ value, issues }) => {
    if (value.minDomains !== undefined && value.whenUnsatisfiable === "ScheduleAnyway") {
      issues.push({ code: "custom", message: "minDomains needs whenUnsatisfiable: DoNotSchedule", input: value });
    }
  });

export const clusterSpreadsSchema: z.ZodType<readonly ClusterSpread[]> = z.array(spreadSchema).min(1).max(16);
