import type { Cluster } from "../../api/cluster.ts";
import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION, virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { nodes } from "../../kube/resources.ts";
import { CORDONED } from "../../placement/member-candidate.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { isBound, isDeleting, isTerminal } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { readinessOf } from "./clusters.ts";
import { lostMembers, type Trouble, whatBecomes } from "./trouble.ts";

/** The state of a pod's member. */
export interface MemberNews {
  readonly troubles: readonly Trouble[];
  /** Why nothing is; absent: it is known. */
  readonly notRead?: string;
}

/** Reads what concerns a pod of the member that it was given to. Rejects with KubeError; without the right to read it, it says so. */
export async function readMemberNews(host: ClusterClient, pod: Stored<Pod>, signal: AbortSignal): Promise<MemberNews> {
  const name = pod.metadata.annotations?.[CLUSTER_ANNOTATION] === undefined ? undefined : memberOf(pod);
  if (name === undefined || isTerminal(pod)) return { troubles: [] };
  try {
    const [cluster, node] = await Promise.all([
      host.find(clusters, { name }, { signal }),
      host.find(nodes, { name: virtualNodeName(name) }, { signal }),
    ]);
    return { troubles: cluster === undefined ? [] : memberTroubles(pod, cluster, node) };
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    const notRead = `whether ${name} is ready is not shown: you may not ${error.verb} ${error.resource} (ClusterRole legation-viewer)`;
    return { troubles: [], notRead };
  }
}

/**
 * What is wrong with the member that a pod was given to, and what that means for the pod, in the words of a workload's status.
 * Nothing of a pod that has ended. `node`: the member's virtual node; undefined where there is none.
 */
export function memberTroubles(
  pod: Stored<Pod>,
  cluster: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
): Trouble[] {
  if (isTerminal(pod)) return [];
  const { namespace = "" } = pod.metadata;
  const { name } = cluster.metadata;
  const lost = lostMembers({ namespace, pods: [pod], clusters: [cluster] });
  if (cluster.metadata.deletionTimestamp !== undefined) {
    return [...lost, { what: `${name} ${readinessOf(cluster, node).reason}` }];
  }
  return [...lost, ...(lost.length === 0 ? unheard(pod, cluster, node) : []), ...cordoned(pod, name, node)];
}

/** Returns a trouble when nothing reports on the member, so its Cluster may be stale. */
function unheard(pod: Stored<Pod>, cluster: Stored<Cluster>, node: Stored<KubeNode> | undefined): Trouble[] {
  const { name } = cluster.metadata;
  const { ready, reason } = readinessOf(cluster, node);
  if (ready === "True") return [];
  const isNodeLost = node !== undefined && !isNodeReady(node) && !isDeleting(pod);
  return [{ what: `${name}: ${reason}`, ...(isNodeLost ? { remedy: whatBecomes([pod], name) } : {}) }];
}

function cordoned(pod: Stored<Pod>, member: string, node: Stored<KubeNode> | undefined): Trouble[] {
  if (node?.spec?.unschedulable !== true || isDeleting(pod)) return [];
  const isThere = pod.metadata.annotations?.[DELEGATE_UID_ANNOTATION] !== undefined;
  const what = `${member}: ${CORDONED.message}`;
  // A cordon counts only until a pod is bound: its delegate is created all the same.
  if (!isThere && isBound(pod)) return [{ what: `${what}; this pod is bound to it and stays` }];
  const meaning = isThere
    ? "this pod stays there, and one that replaces it goes elsewhere"
    : "this pod gets no delegate there before that ends";
  return [
    {
      what: `${what}; ${meaning}`,
      remedy: `so that pods go there again: kubectl uncordon ${node.metadata.name}`,
    },
  ];
}
