import type { KubeObject, ObjectMeta, PodSpec, Toleration } from "./kubernetes.ts";

// Fields of Kueue's objects (sigs.k8s.io/kueue, apis/kueue/v1beta2) that the admission check reads or writes.

export interface KueueCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
  readonly observedGeneration?: number;
}

export interface AdmissionCheck extends KubeObject {
  readonly spec?: { readonly controllerName?: string; readonly parameters?: object };
  readonly status?: { readonly conditions?: readonly KueueCondition[] };
}

export type CheckState = "Pending" | "Ready" | "Retry" | "Rejected";

/** The state of one AdmissionCheck in a workload. */
export interface CheckEntry {
  readonly name: string;
  readonly state: CheckState;
  readonly message?: string;
  readonly lastTransitionTime?: string;
  /** With `Retry`: seconds until Kueue queues the workload again. */
  readonly requeueAfterSeconds?: number;
  /** Counted by Kueue: answers `Retry` in a row. */
  readonly retryCount?: number;
  readonly podSetUpdates?: readonly PodSetUpdate[];
}

/** Fields that Kueue merges into the pods of a pod set when it starts them. */
export interface PodSetUpdate {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
}

export interface PodSet {
  readonly name: string;
  readonly count: number;
  readonly template: { readonly metadata?: Pick<ObjectMeta, "labels" | "annotations">; readonly spec?: PodSpec };
  readonly topologyRequest?: { readonly required?: string };
}

export interface PodSetAssignment {
  readonly name: string;
  /** Name of a ResourceFlavor per resource. */
  readonly flavors?: Readonly<Record<string, string>>;
  /** Absent: the pod set's. Partial admission gives fewer. */
  readonly count?: number;
  readonly topologyAssignment?: TopologyAssignment;
}

/** The topology domains of a pod set's pods. `levels` are keys of node labels. */
export interface TopologyAssignment {
  readonly levels: readonly string[];
  readonly slices?: readonly {
    readonly domainCount: number;
    readonly valuesPerLevel: readonly TopologyValues[];
    readonly podCounts: { readonly universal?: number; readonly individual?: readonly number[] };
  }[];
  /** In place of `slices` in v1beta1. */
  readonly domains?: readonly { readonly values: readonly string[]; readonly count: number }[];
}

export interface TopologyValues {
  readonly universal?: string;
  readonly individual?: { readonly prefix?: string; readonly suffix?: string; readonly roots: readonly string[] };
}

export interface Workload extends KubeObject {
  readonly spec?: {
    readonly queueName?: string;
    /** False: Kueue leaves it alone until somebody sets it to true. */
    readonly active?: boolean;
    readonly priority?: number;
    readonly podSets?: readonly PodSet[];
  };
  readonly status?: {
    readonly conditions?: readonly KueueCondition[];
    readonly admission?: { readonly clusterQueue?: string; readonly podSetAssignments?: readonly PodSetAssignment[] };
    readonly admissionChecks?: readonly CheckEntry[];
    readonly reclaimablePods?: readonly { readonly name: string; readonly count: number }[];
    /** Sums over all pods of each pod set, as Kueue last tried to admit them. */
    readonly resourceRequests?: readonly { readonly resources?: Readonly<Record<string, string | number>> }[];
    readonly requeueState?: { readonly requeueAt?: string };
  };
}

/** Annotation of pods that Kueue started: the name of their Workload. */
export const WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload";

interface WithConditions {
  readonly status?: { readonly conditions?: readonly KueueCondition[] };
}

export function kueueCondition({ status }: WithConditions, type: string): KueueCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

export function isTrue(object: WithConditions, type: string): boolean {
  return kueueCondition(object, type)?.status === "True";
}
