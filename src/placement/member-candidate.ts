import type { Cluster } from "../api/cluster.ts";
import { limitAmounts } from "../api/cluster-policy.ts";
import { VIRTUAL_NODE_TAINT } from "../api/keys.ts";
import type { KubeNode, Taint } from "../api/kubernetes.ts";
import { selectorOf } from "../api/label-expressions.ts";
import type { Candidate } from "./candidate.ts";

/** What is known of a member, from a connection to it or from the host alone. */
export type MemberFacts = Pick<
  Candidate,
  "allocatable" | "largestNode" | "used" | "usedIn" | "keptFor" | "preemptible" | "nodesFor" | "nodesHave"
> & {
  readonly cluster: Cluster;
  readonly closed: Candidate["closed"];
  readonly overdue: boolean;
  readonly foreign: Candidate["foreign"];
  /** Taints of its virtual node. */
  readonly nodeTaints: readonly Taint[];
};

// Of the node lifecycle controller (k8s.io/api/core/v1 well_known_taints.go).
const STATE_TAINTS = new Set(
  [
    "not-ready",
    "unreachable",
    "unschedulable",
    "memory-pressure",
    "disk-pressure",
    "pid-pressure",
    "network-unavailable",
  ].map((name) => `node.kubernetes.io/${name}`),
);

/** Somebody has declared that nothing runs on the node any more. */
export function isOutOfService(node: KubeNode | undefined): boolean {
  return node?.spec?.taints?.some(({ key }) => key === "node.kubernetes.io/out-of-service") ?? false;
}

/** Its Cluster is on its way out. */
export const BEING_REMOVED: NonNullable<Candidate["closed"]> = {
  reason: "ClusterBeingRemoved",
  message: "its Cluster is being deleted",
};
/** Its virtual node takes no new pods. */
export const CORDONED: NonNullable<Candidate["closed"]> = {
  reason: "Cordoned",
  message: "its virtual node is cordoned",
};
/** A pod that is bound to a node which is not there is deleted by the host, and so is each that takes its place. */
export const NO_VIRTUAL_NODE: NonNullable<Candidate["closed"]> = {
  reason: "ClusterNotReady",
  message: "the host has no virtual node for it; if this lasts, its Cluster's condition Ready says why",
};

/** It cannot be asked, for the reason given. */
export function notAnswering(reason: string): NonNullable<Candidate["closed"]> {
  return { reason: "ClusterNotReady", message: `its API server does not answer: ${reason}` };
}

/** A member as placement sees it: what its operator says of it, and what it is. */
export function candidateOf(facts: MemberFacts): Candidate {
  const { cluster, closed, overdue, foreign, nodeTaints, ...known } = facts;
  const { namespaceSelector, limits, taints: own = [] } = cluster.spec;
  // A taint of the Cluster counts from the moment it is written, before its virtual node has it.
  const isOwn = ({ key, effect }: Taint): boolean => own.some((taint) => taint.key === key && taint.effect === effect);
  const taints = [...own, ...nodeTaints.filter((taint) => isForPods(taint) && !isOwn(taint))];
  return {
    name: cluster.metadata.name ?? "",
    labels: cluster.metadata.labels ?? {},
    ...(closed === undefined ? {} : { closed }),
    ...(overdue ? { overdue } : {}),
    ...(foreign === undefined ? {} : { foreign }),
    ...(taints.length === 0 ? {} : { taints }),
    ...(namespaceSelector === undefined ? {} : { admits: selectorOf(namespaceSelector) }),
    ...(limits === undefined ? {} : { limits: limitAmounts(limits) }),
    ...known,
  };
}

/**
 * Not those that Kubernetes puts on a node for its state, which say of the virtual node what the member's state says already, and
 * not Legation's own. `out-of-service` is an operator's word.
 */
function isForPods({ key }: Taint): boolean {
  return key !== VIRTUAL_NODE_TAINT && !STATE_TAINTS.has(key);
}
