import type { Cluster } from "../../api/cluster.ts";
import { HOST_LABEL, MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { Failure } from "../shared/failure.ts";
import { clusterId, readable } from "../shared/reading.ts";
import { clusterRoleBindings, clusterRoles, findAccount, hostAccountName, MEMBER_CLUSTER_LABEL } from "./access.ts";

/** A member, and the host that asks about it. */
export interface Asked {
  readonly host: ClusterClient;
  readonly member: ClusterClient;
  readonly hostId: string;
  /** Name of the Cluster that stands, or stood, for the member. */
  readonly name: string;
}

/** The relation of a member to the Cluster of a name. */
export interface Identity {
  /** The uid of the member's kube-system namespace. */
  readonly memberUid: string;
  /** The member joined as that Cluster, by this host's access in the member or by the recorded uid. */
  readonly isMember: boolean;
  /** Another Cluster that the member joined as. */
  readonly other: string | undefined;
}

/**
 * Tells which Clusters the member joined as. Needs an administrator's rights in the member. Rejects with `Failure` if the member
 * is the host itself, or if another owner holds the name of this host's service account.
 */
export async function identify(
  asked: Asked,
  cluster: Stored<Cluster> | undefined,
  signal: AbortSignal,
): Promise<Identity> {
  const { host, member, hostId, name } = asked;
  const memberUid = await clusterId(member, signal);
  refuseHostItself(memberUid, hostId, name);
  const { as, other: byAccess } = await joinedAs(asked, signal);
  const isRecorded = cluster?.metadata.annotations?.[MEMBER_UID_ANNOTATION] === memberUid;
  const isMember = cluster !== undefined && (as === name || (byAccess === undefined && isRecorded));
  return { memberUid, isMember, other: byAccess ?? (await otherWithUid(host, { uid: memberUid, name }, signal)) };
}

/** Returns another Cluster that the member joined as. Needs no more rights than the stored credentials have. */
export async function otherJoined(asked: Asked, signal: AbortSignal): Promise<string | undefined> {
  const { host, member, name } = asked;
  const { other } = await joinedAs(asked, signal);
  if (other !== undefined) return other;
  const uid = await readable(clusterId(member, signal));
  return uid === undefined ? undefined : await otherWithUid(host, { uid, name }, signal);
}

/**
 * Reads by this host's access in the member which Cluster the member joined as. `other` is that Cluster if it has another name and
 * exists: an interrupted join or unjoin leaves access behind whose Cluster is gone.
 */
async function joinedAs(
  { host, member, hostId, name }: Asked,
  signal: AbortSignal,
): Promise<{ readonly as: string | undefined; readonly other: string | undefined }> {
  const as = await clusterOfAccess(member, hostId, signal);
  const isOther =
    as !== undefined && as !== name && (await host.find(clusters, { name: as }, { signal })) !== undefined;
  return { as, other: isOther ? as : undefined };
}

async function clusterOfAccess(
  client: ClusterClient,
  hostId: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const account = await findAccount(client, hostId, signal);
  const owner = account?.metadata.labels?.[HOST_LABEL];
  if (account !== undefined && owner !== hostId) {
    throw new Failure("refused", {
      object: `${client.cluster}: ServiceAccount ${SYSTEM_NAMESPACE}/${account.metadata.name}`,
      field: `metadata.labels[${HOST_LABEL}]`,
      problem: owner === undefined ? "is missing: Legation did not make it" : `names another host, ${owner}`,
      remedy: "delete that service account, or find out who uses it",
    });
  }
  if (account !== undefined) return account.metadata.labels?.[MEMBER_CLUSTER_LABEL];
  // An administrator may have deleted the account or its namespace; the rest of the access still tells.
  const name = hostAccountName(hostId);
  for (const resource of [clusterRoles, clusterRoleBindings]) {
    const labels = (await readable(client.find(resource, { name }, { signal })))?.metadata.labels;
    if (labels?.[HOST_LABEL] === hostId) return labels[MEMBER_CLUSTER_LABEL];
  }
  return undefined;
}

/** Returns another Cluster of the host that records this member's uid. */
async function otherWithUid(
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
    // The host no longer serves Clusters: Legation is uninstalled.
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/** Refuses a host as its own member: its pods would come back to it, and its own objects would count as a member's. */
function refuseHostItself(memberUid: string, hostId: string, name: string): void {
  if (memberUid !== hostId) return;
  throw new Failure("refused", {
    object: `Cluster ${name}`,
    problem: "the member is the host itself (both have the same kube-system namespace)",
    remedy: "give another cluster with --member-kubeconfig and --member-context",
  });
}

/** Returns the command that records a member's uid in its Cluster. */
export function identifyCommand(name: string, memberUid: string): string {
  return `kubectl annotate clusters.legation.dev ${name} ${MEMBER_UID_ANNOTATION}=${memberUid}`;
}
