import { z } from "zod";
import { type LabelSelector, labelSelectorSchema } from "./label-expressions.ts";
import { labelKeyProblem } from "./label-selector.ts";

/** A pod's `topologySpreadConstraint`, field by field, over labels of Clusters in place of nodes. */
export interface ClusterSpread {
  /** Label of Clusters, or that of virtual nodes, with their names; those with one value are one domain. */
  readonly topologyKey: string;
  /** Pods that a domain may have more than the one with the fewest; default 1. */
  readonly maxSkew?: number;
  /** Default DoNotSchedule. */
  readonly whenUnsatisfiable?: "DoNotSchedule" | "ScheduleAnyway";
  /** With fewer domains than this the fewest counts as none; default 1. */
  readonly minDomains?: number;
  /** Which pods of the namespace are counted; default: those of the pod's own controller. */
  readonly labelSelector?: LabelSelector;
  /**
   * Honor: members of whose nodes the pod selects none are no domains. Ignore: those that its author leaves out are, too. Default: neither;
   * constraints of a pod's own spec have that of Kubernetes, which is Honor.
   */
  readonly nodeAffinityPolicy?: "Honor" | "Ignore";
  /** Honor: Clusters that are closed, or have taints that the pod does not tolerate, are no domains. Default Ignore. */
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

/** The schema of `legation.dev/cluster-spread`. */
export const clusterSpreadsSchema: z.ZodType<readonly ClusterSpread[]> = z.array(spreadSchema).min(1).max(16);
