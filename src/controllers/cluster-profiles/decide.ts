import type { Cluster } from "../../api/cluster.ts";
import { CLUSTER_MANAGER, CLUSTER_MANAGER_LABEL, GROUP } from "../../api/keys.ts";
import type { ClusterProfile, ClusterProfileStatus, ObjectMeta, OwnerReference, Stored } from "../../api/kubernetes.ts";
import type { Decision } from "../../runtime/requeue.ts";
import { statusDiffers, type WantedStatus, withTimes } from "./decide-status.ts";

export interface Observed {
  readonly namespace: string;
  readonly name: string;
  /** The Cluster that the namespace is to have a profile of. */
  readonly cluster: Stored<Cluster> | undefined;
  readonly status: WantedStatus | undefined;
  readonly profile: Stored<ClusterProfile> | undefined;
  /** Times until which refused or undone writes are held; epoch ms. */
  readonly heldUntil: Partial<Record<Action["type"], number>>;
}

export type Action =
  | { readonly type: "create"; readonly profile: ClusterProfile }
  | { readonly type: "patch"; readonly profile: Stored<ClusterProfile>; readonly metadata: Partial<ObjectMeta> }
  | { readonly type: "status"; readonly profile: Stored<ClusterProfile>; readonly status: ClusterProfileStatus }
  | { readonly type: "delete"; readonly profile: Stored<ClusterProfile> }
  | { readonly type: "tell"; readonly cluster: Stored<Cluster>; readonly message: string };

/** Keeps the ClusterProfile of one Cluster in one namespace. Profiles of other managers stay as they are. */
export function decide(observed: Observed, now: number, wall: number = now): Decision<Action> {
  const { profile, cluster, status } = observed;
  if (cluster === undefined || status === undefined) {
    const isSurplus =
      profile !== undefined && isOwnProfile(profile) && profile.metadata.deletionTimestamp === undefined;
    return due(isSurplus ? [{ type: "delete", profile }] : [], "Removed", observed, now);
  }
  if (profile === undefined) {
    return due([{ type: "create", profile: newProfile(observed, cluster) }], "Created", observed, now);
  }
  if (!isOwnProfile(profile)) return { actions: [taken(profile, cluster)], outcome: "Foreign" };
  // A profile that is being deleted is created anew once it is gone.
  if (profile.metadata.deletionTimestamp !== undefined) return { actions: [], outcome: "Deleting" };
  const actions: Action[] = [];
  const metadata = metadataPatch(profile, cluster);
  if (metadata !== undefined) actions.push({ type: "patch", profile, metadata });
  if (statusDiffers(profile, status)) {
    actions.push({ type: "status", profile, status: withTimes(status, profile.status, wall) });
  }
  return due(actions, actions.length === 0 ? "InStep" : "Written", observed, now);
}

function due(actions: readonly Action[], outcome: string, { heldUntil }: Observed, now: number): Decision<Action> {
  const held = actions.map(({ type }) => heldUntil[type] ?? 0).filter((until) => until > now);
  if (held.length === 0) return { actions, outcome };
  const ready = actions.filter(({ type }) => (heldUntil[type] ?? 0) <= now);
  return { actions: ready, outcome: "Held", requeueAt: Math.min(...held) };
}

/** Reports whether the profile is Legation's. `spec.clusterManager` cannot be changed, so the answer never changes either. */
export function isOwnProfile({ spec }: ClusterProfile): boolean {
  return spec?.clusterManager?.name === CLUSTER_MANAGER;
}

function newProfile({ namespace, name }: Observed, cluster: Stored<Cluster>): ClusterProfile {
  const labels = { [CLUSTER_MANAGER_LABEL]: CLUSTER_MANAGER };
  return {
    metadata: { namespace, name, labels, ownerReferences: [ownerOf(cluster)] },
    // Readers may rename it later.
    spec: { displayName: name, clusterManager: { name: CLUSTER_MANAGER } },
  };
}

/** The garbage collector deletes the profile with its Cluster, also where Legation no longer runs. */
function ownerOf({ metadata: { name, uid } }: Stored<Cluster>): OwnerReference {
  return { apiVersion: `${GROUP}/v1alpha1`, kind: "Cluster", name, uid };
}

function metadataPatch(
  { metadata }: Stored<ClusterProfile>,
  cluster: Stored<Cluster>,
): Partial<ObjectMeta> | undefined {
  const { labels = {}, ownerReferences = [] } = metadata;
  const isLabelled = labels[CLUSTER_MANAGER_LABEL] === CLUSTER_MANAGER;
  const owner = ownerOf(cluster);
  const isOwned = ownerReferences.some(({ uid }) => uid === owner.uid);
  if (isLabelled && isOwned) return undefined;
  // A Cluster that was deleted and made again has another uid.
  const others = ownerReferences.filter(({ kind, name }) => kind !== owner.kind || name !== owner.name);
  return {
    ...(isLabelled ? {} : { labels: { [CLUSTER_MANAGER_LABEL]: CLUSTER_MANAGER } }),
    ...(isOwned ? {} : { ownerReferences: [...others, owner] }),
  };
}

function taken({ metadata, spec }: Stored<ClusterProfile>, cluster: Stored<Cluster>): Action {
  const { namespace, name } = metadata;
  const manager = spec?.clusterManager?.name ?? "";
  const message =
    `ClusterProfile ${namespace}/${name} belongs to another cluster manager (its spec.clusterManager.name is ` +
    `"${manager}"), so it does not lead to this member; delete it, or let the member join under another name`;
  return { type: "tell", cluster, message };
}
