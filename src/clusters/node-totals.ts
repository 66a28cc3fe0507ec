import type { DevicesStatus } from "../api/cluster-status.ts";
import { byName } from "../api/json.ts";
import type { KubeNode } from "../api/kubernetes.ts";
import { memoized } from "../api/memoized.ts";
import { type Amounts, addAmounts, isWithin, parseAmounts } from "../api/quantity.ts";
import { deviceResources, unlimited } from "../placement/devices.ts";
import { closedBy, isNodeReady } from "../placement/node-fit.ts";

/** The resources of a member's nodes, summed. Amounts in base units: cores, bytes, pieces. */
export interface NodeTotals {
  readonly nodes: number;
  readonly capacity: Record<string, number>;
  /** Sum over the nodes that most new pods may go to. */
  readonly allocatable: Record<string, number>;
  readonly largestNode: Record<string, number>;
  /** The features that every node declares (`status.declaredFeatures`), in order. */
  readonly features: readonly string[];
}

export function totalsOf(nodes: Iterable<KubeNode>): NodeTotals {
  const capacity: Record<string, number> = byName();
  const allocatable: Record<string, number> = byName();
  const largestNode: Record<string, number> = byName();
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

// Parsing is nearly the whole cost of a sum, and few nodes change between two sums.
const amountsOf = memoized(({ status: { capacity, allocatable } = {} }: KubeNode) => ({
  capacity: parseAmounts(capacity),
  allocatable: parseAmounts(allocatable),
}));

export function fitsLargest(requests: Amounts, largestNode: Amounts, devices?: DevicesStatus): boolean {
  if (isWithin(requests, largestNode)) return true;
  return devices !== undefined && isWithin(requests, unlimited(largestNode, deviceResources(largestNode, devices)));
}

/** Heartbeats do not change the text. */
export function nodeFingerprint(node: KubeNode): string {
  return JSON.stringify([
    isNodeReady(node),
    node.spec?.unschedulable === true,
    node.spec?.podCIDRs,
    node.status?.capacity,
    node.status?.allocatable,
    node.status?.declaredFeatures,
    node.metadata?.labels,
    node.spec?.taints?.map(({ key, value, effect }) => [key, value, effect]),
  ]);
}

// Taints by which kubeadm and others keep pods off the control plane.
const CONTROL_PLANE: ReadonlySet<string> = new Set([
  "node-role.kubernetes.io/control-plane",
  "node-role.kubernetes.io/master",
]);

/** Few pods tolerate such a taint. For one that does, `fitOf` compares its tolerations. */
function repelsMostPods({ spec }: KubeNode): boolean {
  return (spec?.taints ?? []).some(
    ({ key, effect }) =>
      effect !== "PreferNoSchedule" && (key.startsWith("node.kubernetes.io/") || CONTROL_PLANE.has(key)),
  );
}
