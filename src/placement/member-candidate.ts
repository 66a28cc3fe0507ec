import type { Cluster } from "../api/cluster.ts";
import { limitAmounts } from "../api/cluster-policy.ts";
import type { DevicesStatus } from "../api/cluster-status.ts";
import { defined } from "../api/defined.ts";
import { VIRTUAL_NODE_TAINT } from "../api/keys.ts";
import type { KubeNode, Taint } from "../api/kubernetes.ts";
import { selectorOf } from "../api/label-expressions.ts";
import type { Candidate } from "./candidate.ts";
import { deviceResources, unlimited } from "./devices.ts";

export type MemberFacts = Pick<
  Candidate,
  | "allocatable"
  | "largestNode"
  | "used"
  | "tracked"
  | "usedIn"
  | "reservedFor"
  | "preemptible"
  | "nodesFor"
  | "nodesHave"
> & {
  readonly cluster: Cluster;
  readonly closed: Candidate["closed"];
  readonly overdue: boolean;
  readonly foreign: Candidate["foreign"];
  readonly nodeTaints: readonly Taint[];
  /** Undefined if not known. */
  readonly devices?: DevicesStatus | undefined;
};

// Set by the node lifecycle controller (k8s.io/api/core/v1 well_known_taints.go).
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

export function isOutOfService(node: KubeNode | undefined): boolean {
  return node?.spec?.taints?.some(({ key }) => key === "node.kubernetes.io/out-of-service") ?? false;
}

export const BEING_REMOVED: NonNullable<Candidate["closed"]> = {
  reason: "ClusterBeingRemoved",
  message: "its Cluster is being deleted",
};
export const CORDONED: NonNullable<Candidate["closed"]> = {
  reason: "Cordoned",
  message: "its virtual node is cordoned",
};
/** The host deletes pods on a missing node, and their replacements. */
export const NO_VIRTUAL_NODE: NonNullable<Candidate["closed"]> = {
  reason: "ClusterNotReady",
  message: "the host has no virtual node for it; if this lasts, its Cluster's condition Ready says why",
  lacksNode: true,
};

export function notAnswering(reason: string): NonNullable<Candidate["closed"]> {
  return { reason: "ClusterNotReady", message: `its API server does not answer: ${reason}`, silent: true };
}

export function candidateOf(facts: MemberFacts): Candidate {
  const { cluster, closed, overdue, foreign, nodeTaints, devices, ...known } = facts;
  const { namespaceSelector, limits, taints: own = [] } = cluster.spec;
  // A taint of the Cluster counts at once, before its virtual node has it.
  const isOwn = ({ key, effect }: Taint): boolean => own.some((taint) => taint.key === key && taint.effect === effect);
  const taints = [...own, ...nodeTaints.filter((taint) => isForPods(taint) && !isOwn(taint))];
  return {
    name: cluster.metadata.name ?? "",
    labels: cluster.metadata.labels ?? {},
    ...defined({
      closed,
      foreign,
      admits: namespaceSelector && selectorOf(namespaceSelector),
      limits: limits && limitAmounts(limits),
    }),
    ...(overdue ? { overdue } : {}),
    ...(taints.length === 0 ? {} : { taints }),
    ...known,
    ...withDevices(known, devices),
  };
}

function withDevices(
  { allocatable, largestNode }: Pick<Candidate, "allocatable" | "largestNode">,
  devices: DevicesStatus | undefined,
): Partial<Candidate> {
  const resources = deviceResources(largestNode, devices);
  if (resources.size === 0) return {};
  return {
    allocatable: unlimited(allocatable, resources),
    largestNode: unlimited(largestNode, resources),
    deviceResources: resources,
  };
}

/** Leaves out taints of a node's state, which the member's state covers. `out-of-service` is an operator's word. */
function isForPods({ key }: Taint): boolean {
  return key !== VIRTUAL_NODE_TAINT && !STATE_TAINTS.has(key);
}
