import type { AccessSpec, Cluster } from "../../api/cluster.ts";
import type { ClusterStatus as ClusterStatusFields } from "../../api/cluster-status.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { type Amounts, addAmounts, parseAmounts } from "../../api/quantity.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { pods } from "../../kube/resources.ts";
import { podRequests } from "../../placement/requests.ts";
import { isBound, isGated, isTerminal } from "../../pods/pod-state.ts";
import { type Hidden, hiddenLine, OTHER_PODS, VIRTUAL_NODES } from "../shared/hidden.ts";
import { listClusters, listVirtualNodes, listWhereAllowed, OF_PROXIES, readable } from "../shared/reading.ts";
import { type HostMembers, readinessOf, removalOf } from "./members.ts";
import { type QueueReader, type QueueStatus, queueStatuses } from "./queues.ts";

/** A resource of a member in cores or bytes: allocatable, and free of this host's pods. */
interface MemberRoom {
  readonly free: number;
  readonly allocatable: number;
}

export interface MemberStatus {
  readonly name: string;
  /** Status of the Ready condition of the Cluster, or of its node if that is not Ready. Unknown without a report. */
  readonly ready: string;
  /** Why the member is not ready, leaves, or takes no pods. */
  readonly reason?: string | undefined;
  /** How the controller reaches it. Undefined without a report. */
  readonly connection: ClusterStatusFields["connection"];
  /** The agent through which it is reached, as it last connected. */
  readonly agent: ClusterStatusFields["agent"];
  /** How users of the host reach it through the host. Undefined: they do not. */
  readonly access: AccessSpec | undefined;
  readonly version: string | undefined;
  readonly nodes: number | undefined;
  readonly cpu: MemberRoom;
  readonly memory: MemberRoom;
  readonly pods: { readonly running: number; readonly unfinished: number };
  /** Number of kept delegates. Undefined if there are none. */
  readonly held: number | undefined;
  readonly created: string | undefined;
}

/** The status of all members, of the proxies without a member, and of Kueue's queues. */
export interface HostStatus {
  readonly clusters: readonly MemberStatus[];
  readonly waiting: { readonly unplaced: number; readonly gated: number };
  /** Undefined if the host does not serve Kueue. */
  readonly queues?: readonly QueueStatus[] | undefined;
  /** Words for what the account may not read. */
  readonly hidden?: string | undefined;
}

/** The parts of a pod that members' sums count. */
export interface CountedPod {
  readonly nodeName: string | undefined;
  readonly isUnfinished: boolean;
  readonly isRunning: boolean;
  readonly requests: Amounts;
}

/** Sums over the unfinished pods of a virtual node. */
export interface MemberUse {
  running: number;
  unfinished: number;
  readonly requests: Record<string, number>;
}

// A terminal shows the workloads of each queue that wait longest.
const SHOWN = 3;

/**
 * Reads the status of all members and of Kueue's queues, with the pods and workloads of `namespace` where the account may not list
 * all. Rejects with `Failure` where Legation is not installed, and with KubeError if the account may not read Clusters.
 */
export async function readHostStatus(
  host: ClusterClient,
  { namespace, queues: queueReader }: { readonly namespace: string; readonly queues: QueueReader },
  signal: AbortSignal,
): Promise<HostStatus> {
  const reading = listClusters(host, signal);
  const [clusters, nodes, { found: proxies, isAll }, queues] = await Promise.all([
    reading,
    readable(listVirtualNodes(host, signal)),
    reading.then((found) => {
      const bound = areSummed(found) ? { fieldSelector: "spec.nodeName=" } : {};
      const options = { labelSelector: OF_PROXIES, ...bound, dropManagedFields: true, signal };
      return listWhereAllowed(host, pods, [namespace], options);
    }),
    queueReader.read(signal),
  ]);
  const members = { clusters, nodes: nodes ?? [] };
  return {
    ...hostStatus({ ...members, proxies }),
    queues: queues && queueStatuses(queues, members, SHOWN),
    hidden: hiddenLine([...hiddenBeside({ isNode: nodes !== undefined, isAll }), ...(queues?.hidden ?? [])]),
  };
}

/** Returns what the account may not read beside a Cluster. */
export function hiddenBeside({ isNode, isAll }: { readonly isNode: boolean; readonly isAll: boolean }): Hidden[] {
  return [...(isNode ? [] : [VIRTUAL_NODES]), ...(isAll ? [] : [OTHER_PODS])];
}

// Ten pages of a list. Reading 100,000 pods takes an API server half a minute.
const MOST_COUNTED_PODS = 5_000;

/** Reports whether pods are too many to be counted one by one, so that the sums count that the controller wrote. */
function areSummed(clusters: readonly Stored<Cluster>[]): boolean {
  const bound = clusters.reduce((sum, { status }) => sum + (status?.pods ?? 0), 0);
  return (
    bound > MOST_COUNTED_PODS && clusters.every(({ status = {} }) => !status.pods || status.requested !== undefined)
  );
}

/** Sums up what members have and what proxies use of it. If pods are summed, `proxies` are those without a member. */
export function hostStatus({
  clusters,
  nodes,
  proxies,
}: HostMembers & { readonly proxies: readonly Stored<Pod>[] }): HostStatus {
  const unbound = proxies.filter((proxy) => !isTerminal(proxy) && !isBound(proxy));
  const gated = unbound.filter(isGated).length;
  const isSummed = areSummed(clusters);
  return {
    clusters: ofMembers({ clusters, nodes }, proxies.map(countedPod), (cluster, use, node) => {
      const { runningPods: running = 0, unfinishedPods: unfinished = 0, requested } = cluster.status ?? {};
      const summed = { running, unfinished, requests: parseAmounts(requested) };
      return memberStatus(cluster, isSummed ? summed : use, node);
    }),
    waiting: { unplaced: unbound.length - gated, gated },
  };
}

/** Describes each member by its Cluster, what proxies use of it, and its node, in the order of their names. */
export function ofMembers<T extends { readonly name: string }>(
  { clusters, nodes }: HostMembers,
  proxies: Iterable<CountedPod>,
  describe: (cluster: Stored<Cluster>, use: MemberUse, node: Stored<KubeNode> | undefined) => T,
): T[] {
  const useOf = useByNode(proxies);
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  return clusters
    .map((cluster) => {
      const node = virtualNodeName(cluster.metadata.name);
      return describe(cluster, useOf(node), byName.get(node));
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Sums up what one member has, and what its unfinished proxies leave of it. */
export function memberStatus(
  cluster: Stored<Cluster>,
  { running, unfinished, requests }: MemberUse,
  node: Stored<KubeNode> | undefined,
): MemberStatus {
  const { metadata, spec, status } = cluster;
  const { ready, reason } = readinessOf(cluster, node);
  const room = parseAmounts(status?.allocatable);
  const share = (resource: string): MemberRoom => {
    const { [resource]: allocatable = 0 } = room;
    // Pods stay on nodes that are not Ready any more, and that count no more.
    return { free: Math.max(0, allocatable - (requests[resource] ?? 0)), allocatable };
  };
  return {
    name: metadata.name,
    connection: status?.connection,
    access: spec.access,
    agent: status?.agent,
    ready,
    reason: removalOf(cluster) ?? reason,
    version: status?.version,
    nodes: status?.nodes,
    cpu: share("cpu"),
    memory: share("memory"),
    pods: { running, unfinished },
    held: status?.heldDelegates || undefined,
    created: metadata.creationTimestamp,
  };
}

/** Returns what members' sums count of a pod. */
export function countedPod(pod: Pod): CountedPod {
  return {
    nodeName: pod.spec?.nodeName,
    isUnfinished: !isTerminal(pod),
    isRunning: pod.status?.phase === "Running",
    requests: podRequests(pod),
  };
}

/** Sums up what pods use of virtual nodes, by node. */
export function useByNode(pods: Iterable<CountedPod>): (node: string) => MemberUse {
  const byNode = new Map<string, MemberUse>();
  const useOf = (node: string): MemberUse => byNode.get(node) ?? { running: 0, unfinished: 0, requests: {} };
  for (const { nodeName = "", isUnfinished, isRunning, requests } of pods) {
    if (!isUnfinished) continue;
    const use = useOf(nodeName);
    byNode.set(nodeName, use);
    use.unfinished += 1;
    if (isRunning) use.running += 1;
    addAmounts(use.requests, requests);
  }
  return useOf;
}
