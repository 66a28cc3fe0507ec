import type { Cluster, NodeKind } from "../../api/cluster.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { KubeEvent, KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes, pods } from "../../kube/resources.ts";
import type { Replicas } from "../../placement/division.ts";
import { listClusters, listWhereAllowed, notJoined, OF_PROXIES, readable } from "../shared/reading.ts";
import { credentialsTroubles, type MemberCredentials, readCredentials } from "./credentials.ts";
import { readEvents, type ToldEvent, toldEvents } from "./events.ts";
import { countedPod, useByNode } from "./member-use.ts";
import { hiddenOf, type MemberStatus, memberStatus, troublesOfMember } from "./members.ts";
import type { Trouble } from "./model.ts";
import { countBy, kubectlStatus } from "./pod-status.ts";
import { lostMember } from "./trouble.ts";

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
  /** Words for what the account may not read. */
  readonly hidden?: string | undefined;
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

/**
 * Reads one member, with the pods of `namespace` where the account may not list all. Rejects with `Failure` where it has not joined,
 * and with KubeError if the account may not read its Cluster.
 */
export async function readMemberDetail(
  host: ClusterClient,
  { name, namespace }: { readonly name: string; readonly namespace: string },
  signal: AbortSignal,
): Promise<MemberDetail> {
  const nodeName = virtualNodeName(name);
  const ofNode = { labelSelector: OF_PROXIES, fieldSelector: `spec.nodeName=${nodeName}`, signal };
  const [cluster, seen, { found: proxies, isAll }] = await Promise.all([
    host.find(clusters, { name }, { signal }),
    readable(host.find(nodes, { name: nodeName }, { signal }).then((node) => ({ node }))),
    listWhereAllowed(host, pods, [namespace], ofNode),
  ]);
  if (cluster === undefined) throw notJoined(name, await listClusters(host, signal), OF_OTHERS);
  const node = seen?.node;
  const [credentials, ...told] = await Promise.all([
    readCredentials(host, cluster, signal),
    ...[cluster, node].map((object) => object && readable(readEvents(host, object, signal))),
  ]);
  const events = told.flatMap((some) => some ?? []);
  const detail = memberDetail({ cluster, node, proxies, told: events, credentials, now: Date.now() });
  return { ...detail, hidden: hiddenOf({ isNode: seen !== undefined, isAll }) };
}

/** Sums up what the host's objects tell of one member. */
export function memberDetail({ cluster, node, proxies, told, credentials, now }: MemberFacts): MemberDetail {
  const { name } = cluster.metadata;
  const { server, nodeKinds = [], requestedByOthers = {} } = cluster.status ?? {};
  const own = troublesOfMember(cluster, node);
  // The same trouble as the first of its own, with what becomes of the pods.
  const lost = lostMember(cluster, node, proxies).map((trouble) => {
    return { ...trouble, remedy: [trouble.remedy, own[0]?.remedy].join("; ") };
  });
  return {
    ...memberStatus(cluster, useByNode(proxies.map(countedPod))(virtualNodeName(name)), node),
    node: virtualNodeName(name),
    server,
    nodeKinds,
    requestedByOthers,
    statuses: countBy(proxies.map(kubectlStatus)),
    credentials,
    troubles: [...lost, ...own.slice(lost.length), ...credentialsTroubles(cluster, credentials, now)],
    events: toldEvents(told),
  };
}
