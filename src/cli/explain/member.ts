import type { Cluster, NodeKind } from "../../api/cluster.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { KubeEvent, KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Replicas } from "../../placement/division.ts";
import { asViewer, listClusters, listProxies, notJoined, readable } from "../shared/reading.ts";
import { credentialsTroubles, type MemberCredentials, readCredentials } from "./credentials.ts";
import { readEvents, type ToldEvent, toldEvents } from "./events.ts";
import { countedPod, useByNode } from "./member-use.ts";
import { findMembers, type MemberStatus, memberStatus, troublesOfMember } from "./members.ts";
import type { Trouble } from "./model.ts";
import { countBy, kubectlStatus } from "./pod-status.ts";

/** A member with all that the host's objects tell of it, as `legation status NAME` shows it. */
export interface MemberDetail extends MemberStatus {
  /** The host's node that stands for it. */
  readonly node: string;
  /** Address of its API server. */
  readonly server: string | undefined;
  /** The member's nodes by kind: those of one kind are alike. */
  readonly nodeKinds: readonly NodeKind[];
  /** Requests of other tenants' pods in it, as last read. */
  readonly requestedByOthers: Readonly<Record<string, string>>;
  /** The host's pods in it, by their status as kubectl shows it. */
  readonly statuses: Replicas;
  readonly credentials: MemberCredentials;
  readonly troubles: readonly Trouble[];
  /** Events of its Cluster and its node. */
  readonly events: readonly ToldEvent[];
}

/** The host's objects of one member. */
export interface MemberFacts {
  readonly cluster: Stored<Cluster>;
  readonly node: Stored<KubeNode> | undefined;
  /** Proxies that are bound to it. */
  readonly proxies: readonly Stored<Pod>[];
  readonly told: readonly KubeEvent[];
  readonly credentials: MemberCredentials;
  /** Epoch ms. */
  readonly now: number;
}

// A single word is the name of a member.
const OF_OTHERS = "for a workload or an object write its type and name, e.g. `legation status deployment/web`";

/** Reads one member. Rejects with `Failure` where it has not joined, or the account may not read it. */
export async function readMemberDetail(host: ClusterClient, name: string, signal: AbortSignal): Promise<MemberDetail> {
  const [{ clusters, nodes }, proxies] = await asViewer(
    Promise.all([findMembers(host, [name], signal), listProxies(host, { node: virtualNodeName(name), signal })]),
  );
  const [cluster] = clusters;
  if (cluster === undefined) throw notJoined(name, await asViewer(listClusters(host, signal)), OF_OTHERS);
  const [credentials, ...told] = await Promise.all([
    readCredentials(host, cluster, signal),
    ...[cluster, ...nodes].map((object) => readable(readEvents(host, object, signal))),
  ]);
  const events = told.flatMap((some) => some ?? []);
  return memberDetail({ cluster, node: nodes[0], proxies, told: events, credentials, now: Date.now() });
}

/** Sums up what the host's objects tell of one member. */
export function memberDetail({ cluster, node, proxies, told, credentials, now }: MemberFacts): MemberDetail {
  const { name } = cluster.metadata;
  const { server, nodeKinds = [], requestedByOthers = {} } = cluster.status ?? {};
  return {
    ...memberStatus(cluster, useByNode(proxies.map(countedPod))(virtualNodeName(name)), node),
    node: virtualNodeName(name),
    server,
    nodeKinds,
    requestedByOthers,
    statuses: countBy(proxies.map(kubectlStatus)),
    credentials,
    troubles: [...troublesOfMember(cluster, node), ...credentialsTroubles(cluster, credentials, now)],
    events: toldEvents(told),
  };
}
