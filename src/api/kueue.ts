import type { KubeObject, Toleration } from "./kubernetes.ts";
import type { KueueCondition } from "./kueue-workload.ts";

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

export interface LocalQueue extends KubeObject {
  readonly spec?: { readonly clusterQueue?: string };
}

export interface NormalizedFlavor {
  readonly name: string;
  readonly resources: Readonly<Record<string, string>>;
}

export interface CapacityProviderStatus {
  readonly capacity?: { readonly flavors: readonly NormalizedFlavor[] };
  readonly conditions?: readonly KueueCondition[];
}

/** An API of releases after 0.19 (apis/kueue/v1alpha1, `capacityprovider_types.go`). */
export interface CapacityProvider extends KubeObject {
  readonly spec?: {
    readonly controllerName?: string;
    readonly orchestratedFlavors?: readonly { readonly name: string }[];
  };
  readonly status?: CapacityProviderStatus;
}

/** Label that puts an object into a LocalQueue: Kueue suspends it until it is admitted. */
export const QUEUE_NAME_LABEL = "kueue.x-k8s.io/queue-name";
/** Annotation of a Job that may grow while it runs: its pods have a scheduling gate that Kueue removes. */
export const ELASTIC_JOB_ANNOTATION = "kueue.x-k8s.io/elastic-job";
/** Label of pods of a Job or JobSet that Kueue admitted as a whole. */
export const PODSET_LABEL = "kueue.x-k8s.io/podset";
/** Label that Kueue puts on pods that it admitted: the name of their ClusterQueue. */
export const CLUSTER_QUEUE_LABEL = "kueue.x-k8s.io/cluster-queue-name";
/** Prefix of Kueue's labels, of which each pod that it admitted has some. */
export const KUEUE_PREFIX = "kueue.x-k8s.io/";
