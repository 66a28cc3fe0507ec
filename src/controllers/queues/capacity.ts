import type { KubeNode, Toleration } from "../../api/kubernetes.ts";
import { type Amounts, addAmounts, parseAmounts } from "../../api/quantity.ts";
import { type Flavor, labelsOfNodes } from "../../placement/flavors.ts";
import { closedBy } from "../../placement/node-fit.ts";
import { repellingTaint } from "../../pods/scheduling.ts";
import type { MemberLabels } from "../../pods/virtual-node-terms.ts";

/** Pods in a member that a queue admitted. */
export interface QueuedPods {
  readonly queue: string;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly requests: Amounts;
  /** Their node in the member. Absent: not known. */
  readonly node?: string;
}

export interface MemberRoom extends MemberLabels {
  /** Why it takes no new pods. Absent: it takes them. */
  readonly closed?: string;
  readonly nodes: readonly KubeNode[];
  /** Returns the requests on a node of pods that no queue of this host admitted. */
  readonly usedOn: (node: string) => Amounts;
  /** Requests of such pods whose nodes are not known. */
  readonly usedSomewhere: Amounts;
  /** The most that its Cluster lets queues have in all; resources without a limit are left out. */
  readonly limit: Amounts;
  readonly queued: readonly QueuedPods[];
}

export interface FlavorCapacity {
  /** What queues may have of nodes that take new pods. */
  readonly free: Amounts;
  /** What pods hold on other nodes, by ClusterQueue. They stay, and nothing follows them there. */
  readonly staying: ReadonlyMap<string, Amounts>;
  /** Why members that the flavor selects take no new pods. */
  readonly closed: ReadonlyMap<string, string>;
}

/** Returns what each flavor has in the members. A node counts for one flavor only: the one that names the most labels. */
export function capacities(
  flavors: readonly Flavor[],
  members: readonly MemberRoom[],
): ReadonlyMap<string, FlavorCapacity> {
  const sums = new Map(flavors.map(({ name }) => [name, emptySum()]));
  const inOrder = [...flavors].sort(bySpecificity);
  for (const member of members) {
    const candidates = inOrder.flatMap((flavor) => {
      const selector = labelsOfNodes(flavor, member);
      return selector === undefined ? [] : [{ flavor, selector }];
    });
    if (candidates.length === 0) continue;
    const open = new Set<string>();
    const total: Record<string, number> = {};
    const here = new Map<string, Record<string, number>>();
    for (const node of member.nodes) {
      const owner = candidates.find(({ flavor, selector }) => takes(node, selector, flavor.tolerations));
      if (owner === undefined || member.closed !== undefined || closedBy(node) !== undefined) continue;
      const name = node.metadata?.name ?? "";
      open.add(name);
      const free = parseAmounts(node.status?.allocatable);
      subtract(free, member.usedOn(name));
      addAmounts(total, free);
      const sum = here.get(owner.flavor.name) ?? {};
      addAmounts(sum, free);
      here.set(owner.flavor.name, sum);
    }
    const lost = lostIn(member, total);
    for (const [name, free] of here) {
      // No node is named, so each flavor bears a part.
      for (const resource in lost) {
        const part = (free[resource] ?? 0) / (total[resource] || 1);
        subtract(free, { [resource]: part * (lost[resource] ?? 0) });
      }
      addAmounts(sums.get(name)?.free ?? {}, free);
    }
    for (const pod of member.queued) {
      if (pod.node !== undefined && open.has(pod.node)) continue;
      if (pod.node === undefined && member.closed === undefined) continue;
      const owner = candidates.find(({ flavor }) => isAdmittedBy(flavor, pod));
      const staying = owner && sums.get(owner.flavor.name)?.staying;
      if (staying === undefined) continue;
      const sum = staying.get(pod.queue) ?? {};
      addAmounts(sum, pod.requests);
      staying.set(pod.queue, sum);
    }
    if (member.closed === undefined) continue;
    for (const { flavor } of candidates) sums.get(flavor.name)?.closed.set(member.name, member.closed);
  }
  return sums;
}

/** What no queue can have of the sum over nodes. */
function lostIn({ usedSomewhere, limit }: MemberRoom, total: Amounts): Amounts {
  const lost: Record<string, number> = { ...usedSomewhere };
  for (const resource in limit) {
    lost[resource] = Math.max(lost[resource] ?? 0, (total[resource] ?? 0) - (limit[resource] ?? 0));
  }
  return lost;
}

function emptySum(): {
  free: Record<string, number>;
  staying: Map<string, Record<string, number>>;
  closed: Map<string, string>;
} {
  return { free: {}, staying: new Map(), closed: new Map() };
}

function bySpecificity(a: Flavor, b: Flavor): number {
  const difference = Object.keys(b.nodeLabels).length - Object.keys(a.nodeLabels).length;
  return difference === 0 ? (a.name < b.name ? -1 : 1) : difference;
}

function takes(
  { metadata, spec }: KubeNode,
  selector: Readonly<Record<string, string>>,
  tolerations: readonly Toleration[],
): boolean {
  const labels = metadata?.labels ?? {};
  if (Object.entries(selector).some(([key, value]) => labels[key] !== value)) return false;
  return repellingTaint(spec?.taints ?? [], tolerations) === undefined;
}

/** Kueue adds the flavor's labels to the node selector of pods that it admits. */
function isAdmittedBy({ nodeLabels }: Flavor, { nodeSelector }: QueuedPods): boolean {
  return Object.entries(nodeLabels).every(([key, value]) => nodeSelector[key] === value);
}

function subtract(amounts: Record<string, number>, used: Amounts): void {
  for (const resource in amounts) {
    amounts[resource] = Math.max(0, (amounts[resource] ?? 0) - (used[resource] ?? 0));
  }
}
