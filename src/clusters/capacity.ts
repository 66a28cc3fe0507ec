import type { KubeNode } from "../api/kubernetes.ts";
import { type Amounts, addAmounts, isWithin, parseAmounts } from "../api/quantity.ts";
import { closedBy, isNodeReady } from "../placement/node-fit.ts";

/** What a member's nodes have, summed. Amounts in base units: cores, bytes, pieces. */
export interface Capacity {
  readonly nodes: number;
  /** Of all nodes. */
  readonly capacity: Record<string, number>;
  /** Of the nodes that most new pods may go to. */
  readonly allocatable: Record<string, number>;
  /** Per resource, the most that one such node has. */
  readonly largestNode: Record<string, number>;
  /** The features that every node declares (`status.declaredFeatures`), in order. */
  readonly features: readonly string[];
}

/** Sums a member's nodes. */
export function capacityOf(nodes: Iterable<KubeNode>): Capacity {
  const capacity: Record<string, number> = {};
  const allocatable: Record<string, number> = {};
  const largestNode: Record<string, number> = {};
  let count = 0;
  let features: readonly string[] | undefined;
  for (const node of nodes) {
    count += 1;
    const declared = node.status?.declaredFeatures ?? [];
    features = features?.filter((feature) => declared.includes(feature)) ?? declared;
    const parsed = amountsOf(node);
    addAmounts(capacity, parsed.capacity);
    if (closedBy(node) !== undefined || repelsMostPods(node)) continue;
    addAmounts(allocatable, parsed.allocatable);
    for (const name in parsed.allocatable) {
      largestNode[name] = Math.max(largestNode[name] ?? 0, parsed.allocatable[name] ?? 0);
    }
  }
  return { nodes: count, capacity, allocatable, largestNode, features: [...(features ?? [])].sort() };
}

interface NodeAmounts {
  readonly capacity: Amounts;
  readonly allocatable: Amounts;
}

// To parse them is nearly all that a sum costs, and of many nodes few have changed since the last one.
const PARSED = new WeakMap<KubeNode, NodeAmounts>();

function amountsOf(node: KubeNode): NodeAmounts {
  let amounts = PARSED.get(node);
  if (amounts === undefined) {
    const { capacity, allocatable } = node.status ?? {};
    amounts = { capacity: parseAmounts(capacity), allocatable: parseAmounts(allocatable) };
    PARSED.set(node, amounts);
  }
  return amounts;
}

/** Whether a node may have as much of each resource, as far as the largest of each tell. */
export function fitsLargest(requests: Amounts, largestNode: Amounts): boolean {
  return isWithin(requests, largestNode);
}

/** The facts of a node that capacity depends on, as one comparable text: heartbeats leave it the same. */
export function nodeFingerprint(node: KubeNode): string {
  return JSON.stringify([
    isNodeReady(node),
    node.spec?.unschedulable === true,
    node.status?.capacity,
    node.status?.allocatable,
    node.status?.declaredFeatures,
    node.metadata?.labels,
    node.spec?.taints?.map(({ key, value, effect }) => [key, value, effect]),
  ]);
}

// Where kubeadm and its like keep others off the API server's own machines. Other roles are for pods that tolerate them.
const CONTROL_PLANE: ReadonlySet<string> = new Set([
  "node-role.kubernetes.io/control-plane",
  "node-role.kubernetes.io/master",
]);

/**
 * Of the control plane, or with a taint for a node's state. Such a node may be open (`closedBy`), and `fitOf` holds its taints against
 * each pod's tolerations. A sum is for no pod in particular, and few tolerate these; other taints set nodes apart for some of them.
 */
function repelsMostPods({ spec }: KubeNode): boolean {
  return (spec?.taints ?? []).some(
    ({ key, effect }) =>
      effect !== "PreferNoSchedule" && (key.startsWith("node.kubernetes.io/") || CONTROL_PLANE.has(key)),
  );
}
