import type { KubeObject, PodSpec, Toleration } from "./kubernetes.ts";

// Fields of Kueue's objects (sigs.k8s.io/kueue, apis/kueue/v1beta2) that Legation reads or writes.

export interface ResourceFlavor extends KubeObject {
  readonly spec?: {
    readonly nodeLabels?: Readonly<Record<string, string>>;
    readonly tolerations?: readonly Toleration[];
  };
}

export interface NominalQuota {
  readonly name: string;
  readonly nominalQuota?: string | number;
}

export interface FlavorQuotas {
  readonly name: string;
  readonly resources?: readonly NominalQuota[];
}

export type ResourceGroups = readonly { readonly flavors?: readonly FlavorQuotas[] }[];

export interface ClusterQueue extends KubeObject {
  readonly spec?: {
    readonly resourceGroups?: ResourceGroups;
    readonly cohortName?: string;
    readonly queueingStrategy?: string;
  };
  readonly status?: {
    readonly conditions?: readonly KueueCondition[];
    /** Includes what workloads hold that wait for admission checks. */
    readonly flavorsReservation?: readonly FlavorUsage[];
    readonly pendingWorkloads?: number;
    readonly reservingWorkloads?: number;
    readonly admittedWorkloads?: number;
  };
}

export interface FlavorUsage {
  readonly name: string;
  readonly resources?: readonly { readonly name: string; readonly total?: string | number }[];
}

export interface KueueCondition {
  readonly type: string;
  readonly status: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

export interface LocalQueue extends KubeObject {
  readonly spec?: { readonly clusterQueue?: string };
}

type ResourceList = Readonly<Record<string, string | number>>;

export interface Workload extends KubeObject {
  readonly spec?: {
    readonly queueName?: string;
    /** False: Kueue leaves it alone until somebody sets it to true. */
    readonly active?: boolean;
    readonly podSets?: readonly { readonly count?: number; readonly template?: { readonly spec?: PodSpec } }[];
  };
  readonly status?: {
    readonly conditions?: readonly KueueCondition[];
    readonly admission?: { readonly clusterQueue?: string };
    readonly admissionChecks?: readonly {
      readonly name: string;
      readonly state: string;
      readonly message?: string;
    }[];
    /** Of all pods of each pod set, as Kueue last tried to admit them. */
    readonly resourceRequests?: readonly { readonly resources?: ResourceList }[];
    readonly requeueState?: { readonly requeueAt?: string };
  };
}

export interface NormalizedFlavor {
  readonly name: string;
  readonly resources: Readonly<Record<string, string>>;
}

export interface CapacityProviderStatus {
  readonly capacity?: { readonly flavors: readonly NormalizedFlavor[] };
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
    readonly lastTransitionTime?: string;
    readonly observedGeneration?: number;
  }[];
}

/** Of releases after 0.19 (apis/kueue/v1alpha1, `capacityprovider_types.go`). */
export interface CapacityProvider extends KubeObject {
  readonly spec?: {
    readonly controllerName?: string;
    readonly orchestratedFlavors?: readonly { readonly name: string }[];
  };
  readonly status?: CapacityProviderStatus;
}

/** Label that puts an object into a LocalQueue: Kueue suspends it until it is admitted. */
export const QUEUE_NAME_LABEL = "kueue.x-k8s.io/queue-name";
/** Label of pods of a Job or JobSet that Kueue admitted as a whole. */
export const PODSET_LABEL = "kueue.x-k8s.io/podset";
/** Label that Kueue puts on pods that it admitted: the name of their ClusterQueue. */
export const CLUSTER_QUEUE_LABEL = "kueue.x-k8s.io/cluster-queue-name";
/** Prefix of Kueue's labels, of which each pod that it admitted has some. */
export const KUEUE_PREFIX = "kueue.x-k8s.io/";
