import type { Cluster } from "../../api/cluster.ts";
import type { ClusterCondition, NodeKind } from "../../api/cluster-status.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { KubeEvent, KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes, pods } from "../../kube/resources.ts";
import type { Replicas } from "../../placement/division.ts";
import { hiddenLine } from "../shared/hidden.ts";
import { listClusters, listWhereAllowed, notJoined, OF_PROXIES, readable } from "../shared/reading.ts";
import { credentialsTroubles, type MemberCredentials, readCredentials } from "./credentials.ts";
import { readEvents, type ToldEvent, toldEvents } from "./events.ts";
import { countedPod, hiddenBeside, type MemberStatus, memberStatus, useByNode } from "./host.ts";
import { troublesOfMember } from "./members.ts";
import type { Trouble } from "./model.ts";
import { countBy, kubectlStatus } from "./pod-status.ts";
import { lostMember } from "./trouble.ts";

/** A member with all that its Cluster, its node, its credentials' Secret and the host's pods tell of it. */
export interface MemberDetail extends MemberStatus {
  /** The host's node that stands for it. */
  readonly node: string;
  /** Address of its API server. */
  readonly server: string | undefined;
  /** The member's nodes by kind: those of one kind are alike. */
  readonly nodeKinds: readonly NodeKind[];
  /** Requests of other tenants' pods in it, as last read. */
  readonly requestedByOthers: Readonly<Record<string, string>>;
  readonly credentials: MemberCredentials;
  readonly troubles: readonly Trouble[];
  readonly conditions: readonly (Pick<ClusterCondition, "type" | "status" | "message"> & { readonly since: string })[];
  /** Events of its Cluster and its node. Undefined: the user may not read them. */
  readonly events: readonly ToldEvent[] | undefined;
  /** The host's pods in it, by their status as kubectl shows it. */
  readonly statuses: Replicas;
  /** Words for what the account may not read. */
  readonly hidden?: string | undefined;
}

/** The host's objects of one member, but for its pods. */
export interface MemberFacts {
  readonly cluster: Stored<Cluster>;
  readonly node: Stored<KubeNode> | undefined;
  /** Undefined: the user may not read them. */
  readonly told: readonly KubeEvent[] | undefined;
  readonly credentials: MemberCredentials;
  /** Epoch ms. */
  readonly now: number;
}

/**
 * Reads one member, with the pods of `namespace` where the account may not list all. Rejects with `Failure` where it has not joined, which
 * says `otherwise`, and with KubeError if the account may not read its Cluster.
 */
export async function readMemberDetail(
  host: ClusterClient,
  { name, namespace, otherwise }: { readonly name: string; readonly namespace: string; readonly otherwise?: string },
  signal: AbortSignal,
): Promise<MemberDetail> {
  const nodeName = virtualNodeName(name);
  const ofNode = {
    labelSelector: OF_PROXIES,
    fieldSelector: `spec.nodeName=${nodeName}`,
    dropManagedFields: true,
    signal,
  };
  const [cluster, seen, { found: proxies, isAll }] = await Promise.all([
    host.find(clusters, { name }, { signal }),
    readable(host.find(nodes, { name: nodeName }, { signal }).then((node) => ({ node }))),
    listWhereAllowed(host, pods, [namespace], ofNode),
  ]);
  if (cluster === undefined) throw notJoined(name, await listClusters(host, signal), otherwise);
  const node = seen?.node;
  const [credentials, events] = await Promise.all([
    readCredentials(host, cluster, signal),
    readable(Promise.all([cluster, ...(node ? [node] : [])].map((object) => readEvents(host, object, signal)))),
  ]);
  return {
    ...memberDetail({ cluster, node, told: events?.flat(), credentials, now: Date.now() }, proxies),
    hidden: hiddenLine(hiddenBeside({ isNode: seen !== undefined, isAll })),
  };
}

/** Sums up what the host's objects tell of one member. `proxies`: those that are bound to it. */
export function memberDetail(
  { cluster, node, told, credentials, now }: MemberFacts,
  proxies: readonly Stored<Pod>[],
): MemberDetail {
  const { server, nodeKinds = [], requestedByOthers = {}, conditions = [] } = cluster.status ?? {};
  const nodeName = virtualNodeName(cluster.metadata.name);
  const troubles = [...troublesOfMember(cluster, node), ...credentialsTroubles(cluster, credentials, now)];
  // The same trouble as the first of its own, with what becomes of the pods.
  const lost = lostMember(cluster, node, proxies).map((trouble) => {
    return { ...trouble, remedy: [trouble.remedy, troubles[0]?.remedy].join("; ") };
  });
  return {
    ...memberStatus(cluster, useByNode(proxies.map(countedPod))(nodeName), node),
    node: nodeName,
    server,
    nodeKinds,
    requestedByOthers,
    credentials,
    troubles: [...lost, ...troubles.slice(lost.length)],
    conditions: conditions.map(({ type, status, message, lastTransitionTime: since }) => {
      return { type, status, message, since };
    }),
    events: told && toldEvents(told),
    statuses: countBy(proxies.map(kubectlStatus)),
  };
}
