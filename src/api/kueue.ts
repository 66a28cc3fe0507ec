import type { KubeObject, Toleration } from "./kubernetes.ts";

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
  readonly spec?: { readonly resourceGroups?: ResourceGroups };
}

/** Label that Kueue puts on pods that it admitted: the name of their ClusterQueue. */
export const CLUSTER_QUEUE_LABEL = "kueue.x-k8s.io/cluster-queue-name";
/** Prefix of Kueue's labels, of which each pod that it admitted has some. */
export const KUEUE_PREFIX = "kueue.x-k8s.io/";
