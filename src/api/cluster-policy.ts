import { z } from "zod";
import { type LabelSelector, labelSelectorSchema } from "./label-expressions.ts";
import { type Amounts, parseAmounts } from "./quantity.ts";

export interface ClusterTaint {
  readonly key: string;
  readonly value?: string;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/** Limits of what this host's delegates may request of a member. */
export interface ClusterLimits {
  readonly total?: Readonly<Record<string, string>>;
  readonly perNamespace?: Readonly<Record<string, string>>;
}

/** An operator's policy of who may use a member, and how much of it. */
export interface ClusterPolicy {
  /** Labels of the host's namespaces that may use the member. Undefined or empty means all. */
  readonly namespaceSelector?: LabelSelector;
  readonly taints?: readonly ClusterTaint[];
  readonly limits?: ClusterLimits;
}

/** `ClusterLimits` as amounts. */
export interface LimitAmounts {
  readonly total: Amounts;
  readonly perNamespace: Amounts;
}

/** Returns the limits as amounts; resources without a limit are left out. */
export function limitAmounts({ total, perNamespace }: ClusterLimits): LimitAmounts {
  return { total: parseAmounts(total), perNamespace: parseAmounts(perNamespace) };
}

const quantityRules = [
  { rule: "isQuantity(self)", message: 'must be a quantity in quotes, e.g. "100", "500m" or "64Gi"' },
];
// Refuses names that no pod can request, such as a ResourceQuota's: they would limit nothing, unnoticed.
const nameRules = [
  {
    rule:
      "self.all(name, name in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || name.startsWith('hugepages-') || " +
      "(name.contains('/') && !['requests.', 'limits.', 'count/'].exists(prefix, name.startsWith(prefix))))",
    message:
      'must name resources as pods request them, e.g. "cpu", "pods" or "nvidia.com/gpu"; not as a ResourceQuota does ' +
      '("requests.cpu", "limits.cpu", "count/pods")',
  },
];
const limitSchema = z
  .record(z.string(), z.string().max(32).meta({ "x-kubernetes-validations": quantityRules }))
  .meta({ maxProperties: 16, "x-kubernetes-validations": nameRules });

const taintSchema: z.ZodType<ClusterTaint> = z.object({
  key: z.string().min(1).max(317),
  value: z.string().max(63).exactOptional(),
  effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
});

/** The taints that Legation records on a virtual node. */
export const writtenTaintsSchema: z.ZodType<ClusterTaint[]> = z.array(taintSchema);

/** The policy's fields in the schema of a Cluster's spec. */
export const clusterPolicyFields: {
  [Field in keyof ClusterPolicy]-?: z.ZodExactOptional<z.ZodType<Exclude<ClusterPolicy[Field], undefined>>>;
} = {
  namespaceSelector: labelSelectorSchema
    .describe("Selects the host's namespaces that may use the member. Absent or empty: all.")
    .exactOptional(),
  taints: z
    .array(taintSchema)
    .max(32)
    .describe("Taints of the member and its virtual node. Pods need tolerations for them, as for nodes.")
    .exactOptional(),
  limits: z
    .object({
      total: limitSchema.describe("Limits of all pods of this host together.").exactOptional(),
      perNamespace: limitSchema.describe("Limits of the pods of each namespace of the host.").exactOptional(),
    })
    .describe("Limits of the requests of this host's pods. Pods beyond them wait or go elsewhere.")
    .exactOptional(),
};
