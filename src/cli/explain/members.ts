import type { AccessSpec, Cluster } from "../../api/cluster.ts";
import {
  type ClusterStatus as ClusterStatusFields,
  NETWORK_CONDITION,
  RELEASED_CONDITION,
  SLOW,
} from "../../api/cluster-status.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Stored } from "../../api/kubernetes.ts";
import { parseAmounts } from "../../api/quantity.ts";
import { clusters as resources } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes } from "../../kube/resources.ts";
import { CORDONED } from "../../placement/member-candidate.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { isBound, isGated } from "../../pods/pod-state.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { type Hidden, OTHER_PODS, VIRTUAL_NODES } from "../shared/hidden.ts";
import { unfinished } from "../shared/reading.ts";
import { type CountedPod, countedPod, type MemberUse, useByNode } from "./member-use.ts";
import type { Trouble } from "./model.ts";

/** A resource of a member in cores or bytes: allocatable, and free of this host's pods. */
export interface MemberRoom {
  readonly free: number;
  readonly allocatable: number;
}

export interface MemberStatus {
  readonly name: string;
  /** Status of the Ready condition of the Cluster, or of its node if that is not Ready. Unknown without a report. */
  readonly ready: string;
  /** Why the member is not ready, or takes no pods. */
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

export type HostMembers = Pick<HostState, "clusters" | "nodes">;

/** The status of all members, and of the proxies without a member. */
export interface HostStatus {
  readonly clusters: readonly MemberStatus[];
  readonly waiting: { readonly unplaced: number; readonly gated: number };
  /** Words for what the account may not read. */
  readonly hidden?: string | undefined;
}

/** Returns what the account may not read beside a Cluster. */
export function hiddenBeside({ isNode, isAll }: { readonly isNode: boolean; readonly isAll: boolean }): Hidden[] {
  return [...(isNode ? [] : [VIRTUAL_NODES]), ...(isAll ? [] : [OTHER_PODS])];
}

/** Reads members' Clusters and virtual nodes, as far as they are there. Rejects with KubeError. */
export async function findMembers(
  host: ClusterClient,
  names: readonly string[],
  signal: AbortSignal,
): Promise<HostMembers> {
  const [found, virtual] = await Promise.all([
    Promise.all(names.map((name) => host.find(resources, { name }, { signal }))),
    Promise.all(names.map((name) => host.find(nodes, { name: virtualNodeName(name) }, { signal }))),
  ]);
  return { clusters: found.flatMap((cluster) => cluster ?? []), nodes: virtual.flatMap((node) => node ?? []) };
}

// Ten pages of a list. Reading 100,000 pods takes an API server half a minute.
const MOST_COUNTED_PODS = 5_000;

/** Reports whether pods are too many to be counted one by one, so that the sums count that the controller wrote. */
export function areSummed(clusters: readonly Stored<Cluster>[]): boolean {
  const bound = clusters.reduce((sum, { status }) => sum + (status?.pods ?? 0), 0);
  return (
    bound > MOST_COUNTED_PODS && clusters.every(({ status = {} }) => !status.pods || status.requested !== undefined)
  );
}

/** Returns what the controller last wrote that proxies use of a member. */
function summedUse({ status = {} }: Stored<Cluster>): MemberUse {
  const { runningPods: running = 0, unfinishedPods: unfinished = 0, requested } = status;
  return { running, unfinished, requests: parseAmounts(requested) };
}

/** Sums up what members have and what proxies use of it. If pods are summed, `proxies` are those without a member. */
export function hostStatus({ clusters, nodes, proxies }: HostMembers & Pick<HostState, "proxies">): HostStatus {
  const unbound = unfinished(proxies).filter((proxy) => !isBound(proxy));
  const gated = unbound.filter(isGated).length;
  const isSummed = areSummed(clusters);
  return {
    clusters: ofMembers({ clusters, nodes }, proxies.map(countedPod), (cluster, use, node) =>
      memberStatus(cluster, isSummed ? summedUse(cluster) : use, node),
    ),
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
  const allocatable = parseAmounts(status?.allocatable);
  const share = (resource: string): MemberRoom => ({
    // Pods stay on nodes that are not Ready any more, and that count no more.
    free: Math.max(0, (allocatable[resource] ?? 0) - (requests[resource] ?? 0)),
    allocatable: allocatable[resource] ?? 0,
  });
  return {
    name: metadata.name,
    connection: status?.connection,
    access: spec.access,
    agent: status?.agent,
    ...shownReadiness(cluster, node),
    version: status?.version,
    nodes: status?.nodes,
    cpu: share("cpu"),
    memory: share("memory"),
    pods: { running, unfinished },
    held: status?.heldDelegates || undefined,
    created: metadata.creationTimestamp,
  };
}

const UNHEARD = "does `legation controller` run?";
/** Explains a Cluster, or a DelegatedType, without conditions. */
export const NOT_REPORTED: string = `no controller has reported on it: ${UNHEARD}`;

/** Returns a member's readiness as it is shown: the reason of one that leaves is its removal. */
function shownReadiness(
  cluster: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
): Pick<MemberStatus, "ready" | "reason"> {
  const { ready, reason } = readinessOf(cluster, node);
  return { ready, reason: removalOf(cluster) ?? reason };
}

/** Returns why a Cluster that is being deleted is still there. Undefined if it is not being deleted. */
function removalOf({ metadata, status }: Stored<Cluster>): string | undefined {
  if (metadata.deletionTimestamp === undefined) return undefined;
  const kept = status?.conditions?.find(({ type }) => type === RELEASED_CONDITION);
  return kept === undefined ? "is being removed" : `is being removed: ${kept.message}`;
}

export function readinessOf(
  { status }: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
): Pick<MemberStatus, "ready" | "reason"> {
  const said = readyOf(status?.conditions);
  if (said === undefined) return { ready: "Unknown", reason: NOT_REPORTED };
  const { status: ready, message } = said;
  const slow = said.reason === SLOW ? { reason: message } : {};
  if (ready !== "True") return { ready, reason: message };
  // The controller may be gone; then Kubernetes marks the node, whose Lease expires.
  if (node !== undefined && !isNodeReady(node)) {
    const reason = `its node ${node.metadata.name} is not Ready, so what is shown may be old: ${UNHEARD}`;
    return { ready: readyOf(node.status?.conditions)?.status ?? "Unknown", reason };
  }
  return { ready, ...(node?.spec?.unschedulable === true ? { reason: "cordoned: takes no new pods" } : slow) };
}

/** Who writes the conditions of Clusters and DelegatedTypes. */
export const CONTROLLER = "legation controller";
// Who marks the node whose Lease expires.
const NODE_CONTROLLER = "this cluster's node controller";

/** Returns the trouble of a member that is not ready, with what that means. Undefined if it is. */
export function notReady(
  cluster: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
  meaning?: string,
): Trouble | undefined {
  const { ready, reason } = readinessOf(cluster, node);
  if (ready === "True") return undefined;
  const { name } = cluster.metadata;
  const what = [`${name} is not ready: ${reason}`, meaning].filter(Boolean).join("; ");
  const found = { what, remedy: `\`legation doctor --members ${name}\` finds the cause` };
  const said = readyOf(cluster.status?.conditions);
  if (said === undefined) return found;
  if (said.status !== "True") return { ...found, since: said.lastTransitionTime, by: CONTROLLER };
  const { lastTransitionTime } = readyOf(node?.status?.conditions) ?? {};
  return { ...found, ...(lastTransitionTime === undefined ? {} : { since: lastTransitionTime }), by: NODE_CONTROLLER };
}

/** Returns the trouble of a member that leaves. Undefined if it does not. */
export function removing(cluster: Stored<Cluster>): Trouble | undefined {
  const removal = removalOf(cluster);
  const { name, deletionTimestamp: since = "" } = cluster.metadata;
  return removal === undefined ? undefined : { what: `${name} ${removal}`, since };
}

/** Returns the trouble of a member that takes no new pods, with what that means. Undefined if it takes some. */
export function cordoned(name: string, node: Stored<KubeNode> | undefined, meaning?: string): Trouble | undefined {
  if (node?.spec?.unschedulable !== true) return undefined;
  return {
    what: [`${name}: ${CORDONED.message}`, meaning].filter(Boolean).join("; "),
    remedy: `\`kubectl uncordon ${node.metadata.name}\` lets pods go there again`,
  };
}

/** Returns the trouble of a member that is left out of its network. Undefined if it is not. */
export function leftOut({ metadata: { name }, status }: Stored<Cluster>): Required<Trouble> | undefined {
  const said = status?.conditions?.find(({ type }) => type === NETWORK_CONDITION);
  if (said === undefined) return undefined;
  return {
    what: `${name}: ${said.message}`,
    since: said.lastTransitionTime,
    by: CONTROLLER,
    remedy:
      "give the nodes of one of them other pod CIDRs, write spec.podCIDRs if its pods have other addresses than these, or take it " +
      "out of the network: " +
      `\`kubectl patch clusters.legation.dev ${name} --type=merge -p '{"spec":{"network":null}}'\``,
  };
}

/** Returns all that is wrong with a member: its state, its removal, a cordon, its network. */
export function troublesOfMember(cluster: Stored<Cluster>, node: Stored<KubeNode> | undefined): Trouble[] {
  return [notReady(cluster, node), removing(cluster), cordoned(cluster.metadata.name, node), leftOut(cluster)].filter(
    (trouble) => trouble !== undefined,
  );
}

function readyOf<T extends { readonly type: string }>(conditions: readonly T[] = []): T | undefined {
  return conditions.find(({ type }) => type === "Ready");
}

interface MemberObjects {
  readonly cluster: Stored<Cluster>;
  readonly node: Stored<KubeNode> | undefined;
}

/** Returns the Cluster of a member with its readiness. Undefined: it was removed. */
export function memberAmong(
  { clusters, nodes: virtual }: HostMembers,
  name: string,
): (ReturnType<typeof readinessOf> & MemberObjects) | undefined {
  const cluster = clusters.find(({ metadata }) => metadata.name === name);
  const node = virtual.find(({ metadata }) => metadata.name === virtualNodeName(name));
  return cluster && { cluster, node, ...readinessOf(cluster, node) };
}
