import type { Cluster } from "../../api/cluster.ts";
import { defined } from "../../api/defined.ts";
import { MEMBER_NODE_ANNOTATION, virtualNodeName } from "../../api/keys.ts";
import { objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { CLUSTER_QUEUE_LABEL, KUEUE_PREFIX } from "../../api/kueue.ts";
import { type Amounts, addAmounts } from "../../api/quantity.ts";
import { recordedForeignUsage } from "../../clusters/foreign-usage.ts";
import type { Member } from "../../clusters/member.ts";
import { podRequests } from "../../placement/requests.ts";
import { isDeleting, isTerminal } from "../../pods/pod-state.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { WholeInMember } from "../../whole/type.ts";
import { NODE_INDEX } from "../proxies.ts";
import type { MemberRoom, QueuedPods } from "./capacity.ts";

const NOTHING: Amounts = {};

export interface RoomFacts {
  readonly proxies: Pick<ReadStore<Pod>, "byIndex">;
  readonly wholeInMember: (cluster: string) => readonly WholeInMember[];
}

interface HostPods {
  readonly queued: readonly QueuedPods[];
  /** The sum of pods that no queue admitted, and their part on each node that is known. */
  readonly unqueued: Amounts;
  readonly onNodes: ReadonlyMap<string, Amounts>;
  readonly somewhere: Record<string, number>;
  /** Keys by which the pods of whole Jobs and objects are known that a queue admitted. */
  readonly owners: readonly string[];
}

/** Returns what a member has for queues. Pods of this host that no queue admitted count as others' do. */
export function memberRoom(member: Member, facts: RoomFacts): MemberRoom {
  const { name, labels, closed, nodesHave, limits } = member.candidate();
  // Delegates of other shards are not watched.
  const nodeOf = ({ metadata }: Stored<Pod>): string | undefined =>
    member.delegates.get(objectKey(metadata))?.spec?.nodeName ?? metadata.annotations?.[MEMBER_NODE_ANNOTATION];
  const { queued, unqueued, onNodes, somewhere, owners } = hostPods(name, facts, nodeOf);
  const foreign = member.foreignByNode();
  if (foreign === undefined) {
    addAmounts(somewhere, member.foreign ?? recordedForeignUsage(member.cluster) ?? NOTHING);
  }
  return {
    name,
    labels,
    ...defined({ nodesHave, closed: closed?.message }),
    nodes: member.nodes,
    usedOn: (node) => {
      const sum = { ...onNodes.get(node) };
      if (foreign !== undefined) addAmounts(sum, foreign.on(node, owners));
      return sum;
    },
    usedSomewhere: somewhere,
    limit: left(limits?.total ?? NOTHING, unqueued),
    queued,
  };
}

/** Returns what a Cluster has that cannot be reached for want of credentials: what pods have there stays. */
export function unconnectedRoom({ metadata: { name, labels = {} } }: Stored<Cluster>, facts: RoomFacts): MemberRoom {
  const { queued } = hostPods(name, facts, () => undefined);
  const closed = "it has no connection";
  return { name, labels, closed, nodes: [], usedOn: () => NOTHING, usedSomewhere: NOTHING, limit: NOTHING, queued };
}

function hostPods(
  cluster: string,
  { proxies, wholeInMember }: RoomFacts,
  nodeOf: (proxy: Stored<Pod>) => string | undefined,
): HostPods {
  const onNodes = new Map<string, Record<string, number>>();
  const somewhere: Record<string, number> = {};
  const unqueued: Record<string, number> = {};
  const queued: QueuedPods[] = [];
  const owners: string[] = [];
  for (const proxy of proxies.byIndex(NODE_INDEX, virtualNodeName(cluster))) {
    if (isTerminal(proxy)) continue;
    const requests = podRequests(proxy);
    const node = nodeOf(proxy);
    const admitted = admittedPods(proxy, requests);
    if (admitted !== undefined) {
      // A deleted pod goes with its node's room: a queue must not admit its successor there.
      if (isDeleting(proxy)) continue;
      queued.push(node === undefined ? admitted : { ...admitted, node });
    } else if (!isQueued(proxy)) {
      const sum = node === undefined ? somewhere : (onNodes.get(node) ?? {});
      addAmounts(sum, requests);
      addAmounts(unqueued, requests);
      if (node !== undefined) onNodes.set(node, sum);
    }
  }
  for (const { pods, owner } of wholeInMember(cluster)) {
    const admitted = pods.flatMap(({ pod, count }) => {
      const requests: Record<string, number> = {};
      addAmounts(requests, podRequests(pod), count);
      return admittedPods(pod, requests) ?? [];
    });
    queued.push(...admitted);
    if (admitted.length > 0 && owner !== undefined) owners.push(owner);
  }
  return { queued, unqueued, onNodes, somewhere, owners };
}

/** Returns undefined for pods that no queue admitted. */
function admittedPods({ metadata, spec }: Pod, requests: Amounts): QueuedPods | undefined {
  const queue = metadata?.labels?.[CLUSTER_QUEUE_LABEL];
  return queue === undefined ? undefined : { queue, nodeSelector: spec?.nodeSelector ?? {}, requests };
}

function left(limit: Amounts, used: Amounts): Amounts {
  return Object.fromEntries(
    Object.entries(limit).map(([resource, amount]) => [resource, Math.max(0, amount - (used[resource] ?? 0))]),
  );
}

/** An earlier Kueue, or one that lacks the feature, does not say which queue admitted a pod. */
function isQueued({ metadata }: Pod): boolean {
  return Object.keys(metadata?.labels ?? {}).some((label) => label.startsWith(KUEUE_PREFIX));
}
