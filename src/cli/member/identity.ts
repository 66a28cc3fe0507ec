import type { Cluster } from "../../api/cluster.ts";
import { HOST_LABEL, MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { recordedUid } from "../../clusters/identity.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { Failure } from "../shared/failure.ts";
import { clusterId, findClusters, readable } from "../shared/reading.ts";
import { findAccount, hostAccountName, MEMBER_CLUSTER_LABEL } from "./access.ts";

export interface IdentityQuestion {
  readonly host: ClusterClient;
  readonly member: ClusterClient;
  readonly hostId: string;
  /** Name of the Cluster that stands, or stood, for the member. */
  readonly name: string;
}

/** The relation of a member to the Cluster of a name. */
interface MemberRelation {
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
  // The host's pods would come back to it, and its own objects would count as a member's.
  if (memberUid === hostId) {
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem: "the member is the host itself (both have the same kube-system namespace)",
      remedy: "give another cluster with --member-kubeconfig and --member-context",
    });
  }
  const { as, byAccess, byUid } = await joinedAs(asked, memberUid, signal);
  const isRecorded = byAccess === undefined && cluster !== undefined && recordedUid(cluster) === memberUid;
  return { memberUid, isMember: cluster !== undefined && (as === name || isRecorded), other: byAccess ?? byUid };
}

/** Returns another Cluster that the member joined as. Needs no more rights than the stored credentials have. */
export async function otherJoined(asked: IdentityQuestion, signal: AbortSignal): Promise<string | undefined> {
  const { byAccess, byUid } = await joinedAs(asked, await readable(clusterId(asked.member, signal)), signal);
  return byAccess ?? byUid;
}

/** Returns the refusal of a cluster that is not, or may not be, the member of a name. `or`: another remedy. */
export function notThatMember(
  { name, hostId }: IdentityQuestion,
  cluster: Stored<Cluster> | undefined,
  { memberUid, other }: MemberRelation,
  or: string,
): Failure {
  const account = `ServiceAccount ${SYSTEM_NAMESPACE}/${hostAccountName(hostId)}`;
  const identify = `kubectl annotate clusters.legation.dev ${name} ${MEMBER_UID_ANNOTATION}=${memberUid}`;
  const known = cluster && recordedUid(cluster);
  const [why, more] =
    other !== undefined
      ? [`: that has joined as ${other}`, ""]
      : known !== undefined
        ? [` (its kube-system namespace has uid ${known}, and that cluster's has ${memberUid})`, ""]
        : [
            ` as far as can be seen: that has no ${account} for it`,
            `; when it is ${name}, and that access was deleted, write \`${identify}\` and try again`,
          ];
  return new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `is not the cluster of --member-kubeconfig${why}`,
    remedy: `choose ${name}'s context of that kubeconfig with --member-context, or ${or}${more}`,
  });
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

interface JoinedAs {
  /** The name by this host's service account in the member. Its Cluster may be gone. */
  readonly as: string | undefined;
  /** The other Cluster of that name. */
  readonly byAccess: string | undefined;
  /** The other Cluster that records the uid. */
  readonly byUid: string | undefined;
}

async function joinedAs(
  { host, member, hostId, name }: IdentityQuestion,
  uid: string | undefined,
  signal: AbortSignal,
): Promise<JoinedAs> {
  const as = await nameOfAccess(member, hostId, signal);
  // Without Clusters the host has no Legation any more.
  const others = ((await findClusters(host, signal)) ?? []).filter(({ metadata }) => metadata.name !== name);
  return {
    as,
    byAccess: others.find(({ metadata }) => metadata.name === as)?.metadata.name,
    byUid: others.find((cluster) => uid !== undefined && recordedUid(cluster) === uid)?.metadata.name,
  };
}
