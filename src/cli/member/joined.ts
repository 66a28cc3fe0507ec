import type { Cluster } from "../../api/cluster.ts";
import { HOST_LABEL, MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { Failure } from "../failure.ts";
import { clusterId } from "../identity.ts";
import { clusterRoleBindings, clusterRoles, findAccount, MEMBER_CLUSTER_LABEL } from "./access.ts";
import { hostAccountName } from "./names.ts";

/** A member, and the host that asks about it. */
export interface Asked {
  readonly host: ClusterClient;
  readonly member: ClusterClient;
  readonly hostId: string;
  /** Name of the Cluster that stands, or stood, for the member. */
  readonly name: string;
}

/** The Cluster under which this host has joined the member already, when its access, or a part of it, is there. */
async function joinedAs(client: ClusterClient, hostId: string, signal: AbortSignal): Promise<string | undefined> {
  const found = await findAccount(client, hostId, signal);
  if (found === undefined) return leftAs(client, hostId, signal);
  const owner = found.metadata.labels?.[HOST_LABEL];
  if (owner === hostId) return found.metadata.labels?.[MEMBER_CLUSTER_LABEL];
  throw new Failure("refused", {
    object: `${client.cluster}: ServiceAccount ${SYSTEM_NAMESPACE}/${found.metadata.name}`,
    field: `metadata.labels[${HOST_LABEL}]`,
    problem: owner === undefined ? "is missing: Legation did not make it" : `names another host, ${owner}`,
    remedy: "delete that service account, or find out who uses it",
  });
}

/** Finds the Cluster by the rest of the access, since an administrator may have deleted the account or its namespace. */
async function leftAs(client: ClusterClient, hostId: string, signal: AbortSignal): Promise<string | undefined> {
  const name = hostAccountName(hostId);
  for (const resource of [clusterRoles, clusterRoleBindings]) {
    const labels = (await readable(client.find(resource, { name }, { signal })))?.metadata.labels;
    if (labels?.[HOST_LABEL] === hostId) return labels[MEMBER_CLUSTER_LABEL];
  }
  return undefined;
}

/** Reports whether the member joined under this name, by its access there or by its identity. */
export async function hasJoined(
  cluster: Stored<Cluster>,
  { host, member, hostId, name, memberUid }: Asked & { readonly memberUid: string },
  signal: AbortSignal,
): Promise<boolean> {
  const as = await joinedAs(member, hostId, signal);
  if (as === name) return true;
  if (as !== undefined && (await host.find(clusters, { name: as }, { signal })) !== undefined) return false;
  return cluster.metadata.annotations?.[MEMBER_UID_ANNOTATION] === memberUid;
}

/**
 * Another Cluster of the host under which it has joined the member already. Access that an interrupted join or unjoin left
 * behind, whose Cluster is gone, is nobody's.
 */
export async function otherJoined(
  { host, member, hostId, name }: Asked,
  signal: AbortSignal,
): Promise<string | undefined> {
  const as = await joinedAs(member, hostId, signal);
  const isAnother = as !== undefined && as !== name;
  if (isAnother && (await host.find(clusters, { name: as }, { signal })) !== undefined) return as;
  // The host's own credentials for the member may not.
  const uid = await readable(clusterId(member, signal));
  return uid === undefined ? undefined : await otherWithUid(host, { uid, name }, signal);
}

/** Another Cluster of the host that the member with this identity has joined as. */
export async function otherWithUid(
  host: ClusterClient,
  { uid, name }: { readonly uid: string; readonly name: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const known = await listAll(host, clusters, { dropManagedFields: true, signal });
    const isSame = ({ metadata: { annotations } }: Stored<Cluster>): boolean =>
      annotations?.[MEMBER_UID_ANNOTATION] === uid;
    return known.find((cluster) => cluster.metadata.name !== name && isSame(cluster))?.metadata.name;
  } catch (error) {
    // Legation is not installed there any more.
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/** No cluster is a member of its own: its pods would come back to it, and its own objects would be taken for a member's. */
export function refuseHostItself({
  memberUid,
  hostId,
  name,
}: {
  readonly memberUid: string;
  readonly hostId: string;
  readonly name: string;
}): void {
  if (memberUid !== hostId) return;
  throw new Failure("refused", {
    object: `Cluster ${name}`,
    problem: "the member is the host itself (both have the same kube-system namespace)",
    remedy: "give another cluster with --member-kubeconfig and --member-context",
  });
}

/** How a person says that a cluster is the member of a Cluster that does not know its identity. */
export function identifyCommand(name: string, memberUid: string): string {
  return `kubectl annotate clusters.legation.dev ${name} ${MEMBER_UID_ANNOTATION}=${memberUid}`;
}

/** Resolves to undefined when the credentials do not permit the read. */
export async function readable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isKubeError(error, "Forbidden")) return undefined;
    throw error;
  }
}
