import type { Cluster } from "../api/cluster.ts";
import { JOINED_TWICE } from "../api/cluster-status.ts";
import type { Stored } from "../api/kubernetes.ts";
import { recordedUid } from "./identity.ts";

/** The cluster that a connection leads to. */
export interface FoundIdentity {
  /** The uid of its namespace kube-system; undefined when the credentials may not read that. */
  readonly uid: string | undefined;
  readonly server: string;
}

/** A Cluster, and the cluster that its connection leads to once that is known. */
export interface Joined {
  readonly cluster: Stored<Cluster>;
  readonly found: FoundIdentity | undefined;
}

/** Returns the refused Clusters, each with the one that keeps the member: two would count its nodes and delegates twice. */
export function joinedTwice(clusters: readonly Joined[]): Map<string, string> {
  const refused = new Map<string, string>();
  const kept: Joined[] = [];
  for (const one of clusters.toSorted(byPrecedence)) {
    const keeper = kept.find((other) => isSameMember(one, other));
    if (keeper === undefined) kept.push(one);
    else refused.set(one.cluster.metadata.name, keeper.cluster.metadata.name);
  }
  return refused;
}

/** Returns values of which two Clusters of one member share at least one. */
export function identityKeys({ cluster, found }: Joined): readonly string[] {
  const uid = recordedUid(cluster) ?? found?.uid;
  const server = cluster.spec.agent === undefined ? found?.server : undefined;
  return [...(uid === undefined ? [] : [`uid ${uid}`]), ...(server === undefined ? [] : [`server ${server}`])];
}

export function joinedTwiceProblem(name: string, keeper: string): string {
  return (
    `its member has joined already, as Cluster ${keeper} (both lead to the same API server), so no pod is placed here; ` +
    `run \`legation unjoin ${name}\`, or change its credentials to those of another cluster`
  );
}

/** A Cluster that was refused stays so; then one with delegates on record comes first, then the older one. */
function byPrecedence({ cluster: one }: Joined, { cluster: other }: Joined): number {
  return (
    Number(wasRefused(one)) - Number(wasRefused(other)) ||
    Number(hasPods(other)) - Number(hasPods(one)) ||
    compare(one.metadata.creationTimestamp ?? "", other.metadata.creationTimestamp ?? "") ||
    compare(one.metadata.name, other.metadata.name)
  );
}

function wasRefused({ status }: Stored<Cluster>): boolean {
  return status?.conditions?.some(({ reason }) => reason === JOINED_TWICE) ?? false;
}

function hasPods({ status }: Stored<Cluster>): boolean {
  return (status?.pods ?? 0) > 0;
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/**
 * Compares uids. Only credentials that may not read the uid are compared by the server's address, which an agent chooses, and which
 * is the same in many clusters.
 */
function isSameMember(one: Joined, other: Joined): boolean {
  const uid = recordedUid(one.cluster) ?? one.found?.uid;
  const otherUid = recordedUid(other.cluster) ?? other.found?.uid;
  if (uid !== undefined && otherUid !== undefined) return uid === otherUid;
  if (one.cluster.spec.agent !== undefined || other.cluster.spec.agent !== undefined) return false;
  return one.found !== undefined && one.found.server === other.found?.server;
}
