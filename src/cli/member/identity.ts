import type { Cluster } from "../../api/cluster.ts";
import { HOST_LABEL, MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { recordedUid } from "../../clusters/identity.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { Failure } from "../shared/failure.ts";
import { clusterId, findClusters, readable } from "../shared/reading.ts";
import { findAccount, MEMBER_CLUSTER_LABEL } from "./access.ts";

export interface IdentityQuestion {
  readonly host: ClusterClient;
  readonly member: ClusterClient;
  readonly hostId: string;
  /** Name of the Cluster that stands, or stood, for the member. */
  readonly name: string;
}

/** The relation of a member to the Cluster of a name. */
export interface MemberRelation {
  readonly memberUid: string;
  /** The member joined as that Cluster, by this host's access in the member or by the recorded uid. */
  readonly isMember: boolean;
  /** Another Cluster that the member joined as. */
  readonly other: string | undefined;
}

/** Tells which Clusters the member joined as, with an administrator's rights there. Rejects with `Failure`. */
export async function identifyMember(
  asked: IdentityQuestion,
  cluster: Stored<Cluster> | undefined,
  signal: AbortSignal,
): Promise<MemberRelation> {
  const { member, hostId, name } = asked;
  const memberUid = await clusterId(member, signal);
  refuseHostItself(memberUid, hostId, name);
  const as = await nameOfAccess(member, hostId, signal);
  const { byAccess, byUid } = await others(asked, as, memberUid, signal);
  const isMember =
    cluster !== undefined && (as === name || (byAccess === undefined && recordedUid(cluster) === memberUid));
  return { memberUid, isMember, other: byAccess ?? byUid };
}

/** Returns another Cluster that the member joined as. Needs no more rights than the stored credentials have. */
export async function otherJoined(asked: IdentityQuestion, signal: AbortSignal): Promise<string | undefined> {
  const { member, hostId } = asked;
  const as = await nameOfAccess(member, hostId, signal);
  const { byAccess, byUid } = await others(asked, as, await readable(clusterId(member, signal)), signal);
  return byAccess ?? byUid;
}

/** Returns the name under which this host's service account says that the member joined. Its Cluster may be gone. */
async function nameOfAccess(member: ClusterClient, hostId: string, signal: AbortSignal): Promise<string | undefined> {
  const account = await findAccount(member, hostId, signal);
  if (account === undefined) return undefined;
  const { name, labels } = account.metadata;
  const owner = labels?.[HOST_LABEL];
  if (owner === hostId) return labels?.[MEMBER_CLUSTER_LABEL];
  throw new Failure("refused", {
    object: `${member.cluster}: ServiceAccount ${SYSTEM_NAMESPACE}/${name}`,
    field: `metadata.labels[${HOST_LABEL}]`,
    problem: owner === undefined ? "is missing: Legation did not make it" : `names another host, ${owner}`,
    remedy: "delete that service account, or find out who uses it",
  });
}

/** Returns the other Clusters of the host for this member: that of the account's name, and one that records the uid. */
async function others(
  { host, name }: IdentityQuestion,
  as: string | undefined,
  uid: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly byAccess: string | undefined; readonly byUid: string | undefined }> {
  // Without Clusters the host has no Legation any more.
  const served = (await findClusters(host, signal)) ?? [];
  const known = served.filter(({ metadata }) => metadata.name !== name);
  const sameUid = known.find((cluster) => uid !== undefined && recordedUid(cluster) === uid);
  return {
    byAccess: known.find(({ metadata }) => metadata.name === as)?.metadata.name,
    byUid: sameUid?.metadata.name,
  };
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

export function identifyCommand(name: string, memberUid: string): string {
  return `kubectl annotate clusters.legation.dev ${name} ${MEMBER_UID_ANNOTATION}=${memberUid}`;
}
