import type { Cluster } from "../../api/cluster.ts";
import { NETWORK_CONDITION, RELEASED_CONDITION, SLOW } from "../../api/cluster-status.ts";
import { defined } from "../../api/defined.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Stored } from "../../api/kubernetes.ts";
import { clusters as resources } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes as nodeResource } from "../../kube/resources.ts";
import { CORDONED } from "../../placement/member-candidate.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import type { HostState } from "../../simulation/host-state.ts";
import type { Trouble } from "./model.ts";

export type HostMembers = Pick<HostState, "clusters" | "nodes">;

/** Reads members' Clusters and virtual nodes, as far as they are there. Rejects with KubeError. */
export async function findMembers(
  host: ClusterClient,
  names: readonly string[],
  signal: AbortSignal,
): Promise<HostMembers> {
  const [clusters, nodes] = await Promise.all([
    Promise.all(names.map((name) => host.find(resources, { name }, { signal }))),
    Promise.all(names.map((name) => host.find(nodeResource, { name: virtualNodeName(name) }, { signal }))),
  ]);
  return { clusters: clusters.flatMap((cluster) => cluster ?? []), nodes: nodes.flatMap((node) => node ?? []) };
}

/** Returns the Cluster of a member and its virtual node. Undefined: it was removed. */
export function memberAmong(
  { clusters, nodes }: HostMembers,
  name: string,
): { readonly cluster: Stored<Cluster>; readonly node: Stored<KubeNode> | undefined } | undefined {
  const cluster = clusters.find(({ metadata }) => metadata.name === name);
  return cluster && { cluster, node: nodes.find(({ metadata }) => metadata.name === virtualNodeName(name)) };
}

const UNHEARD = "does `legation controller` run?";
/** Explains a Cluster, or a DelegatedType, without conditions. */
export const NOT_REPORTED: string = `no controller has reported on it: ${UNHEARD}`;
/** The writer of the conditions of Clusters and DelegatedTypes. */
export const CONTROLLER = "legation controller";

/** Tells whether a member is ready; why it is not or takes no pods, since when, and who says so. */
export interface Readiness {
  /** Status of the Ready condition of the Cluster, or of its node if that is not Ready. Unknown without a report. */
  readonly ready: string;
  readonly reason?: string;
  readonly since?: string;
  readonly by?: string;
}

export function readinessOf({ status }: Stored<Cluster>, node: Stored<KubeNode> | undefined): Readiness {
  const said = readyOf(status?.conditions);
  if (said === undefined) return { ready: "Unknown", reason: NOT_REPORTED };
  const { status: ready, message: reason, lastTransitionTime: since } = said;
  if (ready !== "True") return { ready, reason, since, by: CONTROLLER };
  // The controller may be gone; then Kubernetes marks the node, whose Lease expires.
  if (node !== undefined && !isNodeReady(node)) {
    const ofNode = readyOf(node.status?.conditions);
    return {
      ready: ofNode?.status ?? "Unknown",
      reason: `its node ${node.metadata.name} is not Ready, so what is shown may be old: ${UNHEARD}`,
      ...defined({ since: ofNode?.lastTransitionTime }),
      by: "this cluster's node controller",
    };
  }
  if (node?.spec?.unschedulable === true) return { ready, reason: "cordoned: takes no new pods" };
  return said.reason === SLOW ? { ready, reason } : { ready };
}

function readyOf<T extends { readonly type: string }>(conditions: readonly T[] = []): T | undefined {
  return conditions.find(({ type }) => type === "Ready");
}

/** Returns the trouble of a member that is not ready, with what that means. Undefined if it is. */
export function notReady(
  cluster: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
  meaning?: string,
): Trouble | undefined {
  const { ready, reason, ...said } = readinessOf(cluster, node);
  if (ready === "True") return undefined;
  const { name } = cluster.metadata;
  const what = [`${name} is not ready: ${reason}`, meaning].filter(Boolean).join("; ");
  return { what, ...said, remedy: `\`legation doctor --members ${name}\` finds the cause` };
}

/** Returns why a Cluster that is being deleted is still there. Undefined if it is not being deleted. */
export function removalOf({ metadata, status }: Stored<Cluster>): string | undefined {
  if (metadata.deletionTimestamp === undefined) return undefined;
  const kept = status?.conditions?.find(({ type }) => type === RELEASED_CONDITION);
  return kept === undefined ? "is being removed" : `is being removed: ${kept.message}`;
}

/** Returns the trouble of a member that leaves. Undefined if it does not. */
export function removing(cluster: Stored<Cluster>): Trouble | undefined {
  const removal = removalOf(cluster);
  const { name, deletionTimestamp: since = "" } = cluster.metadata;
  return removal === undefined ? undefined : { what: `${name} ${removal}`, since };
}

/** Returns the trouble of a member that takes no new pods. Undefined if it takes some. */
export function cordoned(name: string, node: Stored<KubeNode> | undefined): Trouble | undefined {
  if (node?.spec?.unschedulable !== true) return undefined;
  return {
    what: `${name}: ${CORDONED.message}`,
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
