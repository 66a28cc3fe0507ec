import { defined } from "../api/defined.ts";
import { WISHES_OF_ANNOTATION } from "../api/keys.ts";
import type { KubeObject, Pod, Stored } from "../api/kubernetes.ts";
import { isWishingKind, readWishesOf, type WorkloadRef, wishesOfText } from "../api/workload-wishes.ts";
import { deployments, type Resource, replicaSets, replicationControllers, statefulSets } from "../kube/resources.ts";
import { controllerOf } from "../pods/pod-state.ts";

export interface Updated {
  readonly kind: "Deployment" | "Rollout";
  readonly name: string;
}

/** A workload whose wishes are read from it, or what is known of one. */
export interface WishingWorkload {
  /** Absent: there is no such workload. */
  readonly uid?: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The wishes of a pod's workload; none if it has none. */
export interface FoundWishes {
  readonly annotations: WishingWorkload["annotations"];
  /** The pod's template names a workload that is not known yet. */
  readonly unseen?: WorkloadRef;
}

/** Where placement reads the wishes of pods' workloads. */
export interface PodWishes {
  of(pod: Stored<Pod>): FoundWishes;
}

export type FindWorkload = (namespace: string, workload: WorkloadRef) => WishingWorkload | undefined;

/** The resources of the kinds whose wishes are read from the workload. */
export const WISHING: Readonly<Record<WorkloadRef["kind"], Resource<KubeObject>>> = {
  Deployment: deployments,
  ReplicaSet: replicaSets,
  StatefulSet: statefulSets,
  ReplicationController: replicationControllers,
};

const API_VERSIONS: ReadonlySet<string> = new Set(["apps/v1", "v1"]);

// Labels of pods by kind. The value is the end of their ReplicaSet's name.
const HASH_LABELS: readonly (readonly [Updated["kind"], string])[] = [
  ["Deployment", "pod-template-hash"],
  ["Rollout", "rollouts-pod-template-hash"],
];

/** The ReplicaSets of a workload must not each begin with another cluster. */
export function workloadOf(pod: Stored<Pod>): string {
  const { metadata } = pod;
  return updatedOf(pod)?.name ?? `${metadata.namespace}/${controllerOf(pod)?.name ?? metadata.name}`;
}

export function updatedOf({ metadata }: Stored<Pod>): Updated | undefined {
  const { kind: ownerKind, name = "" } = controllerOf({ metadata }) ?? {};
  if (ownerKind !== "ReplicaSet") return undefined;
  for (const [kind, label] of HASH_LABELS) {
    const hash = metadata.labels?.[label];
    if (!hash || !name.endsWith(`-${hash}`)) continue;
    return { kind, name: `${metadata.namespace}/${name.slice(0, -hash.length - 1)}` };
  }
  return undefined;
}

/** Returns the workloads whose wishes may count for a pod: the one that its template names, or its controller and that one's. */
function wishSources(pod: Stored<Pod>): readonly (WorkloadRef & { readonly uid?: string })[] {
  const { apiVersion = "", kind = "", name = "", uid = "" } = controllerOf(pod) ?? {};
  const owner = isWishingKind(kind) && API_VERSIONS.has(apiVersion) ? { kind, name, uid } : undefined;
  const named = namedWorkload(pod);
  if (named !== undefined) return [named.kind === owner?.kind && named.name === owner.name ? owner : named];
  if (owner === undefined) return [];
  const updated = updatedOf(pod);
  if (updated?.kind !== "Deployment") return [owner];
  return [owner, { kind: "Deployment", name: updated.name.slice(`${pod.metadata.namespace}/`.length) }];
}

export function wishesOf(pod: Stored<Pod>, find: FindWorkload): FoundWishes {
  const { namespace = "" } = pod.metadata;
  for (const source of wishSources(pod)) {
    const found = find(namespace, source);
    // Another workload may have had the name before.
    const isSame = source.uid === undefined || found?.uid === undefined || found.uid === source.uid;
    if (found !== undefined && isSame) return { annotations: found.annotations };
  }
  const unseen = namedWorkload(pod);
  return { annotations: {}, ...defined({ unseen }) };
}

export function workloadKey(namespace: string, workload: WorkloadRef): string {
  return `${namespace}/${wishesOfText(workload)}`;
}

function namedWorkload({ metadata }: Stored<Pod>): WorkloadRef | undefined {
  return readWishesOf(metadata.annotations?.[WISHES_OF_ANNOTATION] ?? "");
}
