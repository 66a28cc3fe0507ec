import { z } from "zod";
import type { ObjectMeta } from "./kubernetes.ts";

/** Longest name of a Cluster: `legation-<name>` and the name itself must fit a label value of 63 characters. */
export const CLUSTER_NAME_MAX = 54;

/** What an operator says of a member; the API server fills in the defaults. */
export interface ClusterSpec {
  readonly credentialsSecret: { readonly name: string; readonly key?: string | undefined };
  readonly createNamespaces?: boolean | undefined;
  readonly scheduleTimeoutSeconds?: number | undefined;
  readonly probe?: ProbeSpec | undefined;
}

/** How it is found out whether a member can be reached. */
export interface ProbeSpec {
  readonly periodSeconds?: number | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly failureThreshold?: number | undefined;
}

/** A condition as in metav1. */
export interface ClusterCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number | undefined;
}

/** What the controller says of a member. */
export interface ClusterStatus {
  readonly observedGeneration?: number | undefined;
  readonly version?: string | undefined;
  readonly nodes?: number | undefined;
  readonly pods?: number | undefined;
  readonly capacity?: Readonly<Record<string, string>> | undefined;
  readonly allocatable?: Readonly<Record<string, string>> | undefined;
  readonly conditions?: readonly ClusterCondition[] | undefined;
}

/** A member cluster, as the host knows it. Selectors match its labels. */
export interface Cluster {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: ClusterSpec;
  readonly status?: ClusterStatus;
}

const condition = z.object({
  type: z.string().max(316),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string().max(1024),
  message: z.string().max(32768),
  lastTransitionTime: z.iso.datetime(),
  observedGeneration: z.int().min(0).optional(),
});

const amounts = z.record(z.string(), z.string());

/** Schema of `ClusterSpec`: the CRD is made from it. */
export const clusterSpecSchema: z.ZodType<ClusterSpec> = z.object({
  credentialsSecret: z
    .object({
      name: z.string().min(1).max(253).describe("Name of a Secret in legation-system."),
      key: z.string().min(1).max(253).default("kubeconfig").describe("Key of the kubeconfig in that Secret."),
    })
    .describe("Where the kubeconfig is that the controller reaches the member with."),
  createNamespaces: z
    .boolean()
    .default(true)
    .describe("Whether a namespace that the member lacks is created there when a pod of it is delegated."),
  scheduleTimeoutSeconds: z
    .int()
    .min(1)
    .max(3600)
    .default(30)
    .describe("How long the member's scheduler may take for a pod before the next member is tried."),
  probe: z
    .object({
      periodSeconds: z
        .int()
        .min(1)
        .max(300)
        .default(10)
        .describe("Time between two probes of the member's API server."),
      timeoutSeconds: z.int().min(1).max(60).default(5).describe("How long one probe may take."),
      failureThreshold: z
        .int()
        .min(1)
        .max(100)
        .default(3)
        .describe("Failed probes in a row until the member counts as not ready."),
    })
    .optional()
    .describe("How it is found out whether the member can be reached."),
});

/** Schema of `ClusterStatus`: the CRD is made from it. */
export const clusterStatusSchema: z.ZodType<ClusterStatus> = z.object({
  observedGeneration: z.int().min(0).optional(),
  version: z.string().optional().describe("Kubernetes version of the member."),
  nodes: z.int().min(0).optional().describe("Number of nodes of the member."),
  pods: z.int().min(0).optional().describe("Number of proxy pods bound to the member's virtual node."),
  capacity: amounts.optional().describe("Summed over the member's nodes."),
  allocatable: amounts.optional().describe("Summed over the nodes that take pods."),
  conditions: z.array(condition).optional(),
});
