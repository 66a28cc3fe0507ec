import { isEmptyTerm } from "../api/cluster-affinity.ts";
import type { KubeNode, NodeSelectorTerm, Pod, Toleration } from "../api/kubernetes.ts";
import { isKnownExpression, requirementOf } from "../api/label-expressions.ts";
import { selectorMatches } from "../api/label-selector.ts";
import { type Amounts, isWithin, parseAmounts } from "../api/quantity.ts";
import { isOverflow } from "../pods/overflow.ts";
import { repellingTaint, taintText } from "../pods/tolerations.ts";

/** What a pod wants of the one node that it goes to. */
export interface NodeNeeds {
  /** The same for all pods that want the same. */
  readonly kind: string;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Of its required node affinity: one must match; absent: any node. */
  readonly terms?: readonly NodeSelectorTerm[];
  /** Its own, and those that the member's API server may give it. */
  readonly tolerations: readonly Toleration[];
  readonly requests: Amounts;
}

/** What the nodes of a member have for a pod. */
export interface NodeFit {
  readonly nodes: number;
  /** Those that the pod selects, and that take new pods. */
  readonly selected: number;
  /** Those of them whose taints it tolerates. */
  readonly tolerated: number;
  /** Per resource, the most that one of these has. */
  readonly largest: Amounts;
  /** One of these has as much as the pod requests, of every resource. */
  readonly large: boolean;
  /** How many of the others do not take it, by what is against it, in words. */
  readonly against: ReadonlyMap<string, number>;
}

/** What is against a node that the pod does not select. */
export const NOT_SELECTED = "not selected by the pod";

// Members write their nodes' taints, and messages are kept on the host.
const MOST_REASONS = 8;
const MOST_TAINT_LENGTH = 120;
const OTHERWISE = "otherwise";

/** What a pod wants of its node. */
export function nodeNeeds(pod: Pod, requests: Amounts): NodeNeeds {
  const { spec } = pod;
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const needs = {
    nodeSelector: spec?.nodeSelector ?? {},
    ...(terms === undefined ? {} : { terms }),
    // Where one in overflow mode goes it stays: what may only be so is not enough.
    tolerations: [...(spec?.tolerations ?? []), ...(isOverflow(pod) ? [] : deviceTolerations(requests))],
    requests,
  };
  return { kind: JSON.stringify(needs), ...needs };
}

/**
 * What the admission plugin ExtendedResourceToleration gives a pod, as on GKE, EKS and AKS. Where a member has no such plugin, its scheduler
 * refuses the pod.
 */
function deviceTolerations(requests: Amounts): Toleration[] {
  return Object.keys(requests)
    .filter(isExtended)
    .map((key) => ({ key, operator: "Exists", effect: "NoSchedule" }));
}

/** True for a resource of somebody else's than Kubernetes (pkg/apis/core/helper, IsExtendedResourceName). */
function isExtended(resource: string): boolean {
  return resource.includes("/") && !resource.includes("kubernetes.io/") && !resource.startsWith("requests.");
}

/** Judges a member's nodes by kube-scheduler's rules for names, labels, taints and resources, as far as these go. */
export function fitOf(needs: NodeNeeds, nodes: Iterable<KubeNode>): NodeFit {
  const largest: Record<string, number> = {};
  let all = 0;
  let selected = 0;
  let tolerated = 0;
  let large = false;
  const against = new Map<string, number>();
  const count = (reason: string): void => {
    const known = against.has(reason) || against.size < MOST_REASONS ? reason : OTHERWISE;
    against.set(known, (against.get(known) ?? 0) + 1);
  };
  for (const node of nodes) {
    all += 1;
    const closed = untold(node) ?? (isSelected(needs, node) ? closedBy(node) : NOT_SELECTED);
    if (closed !== undefined) {
      count(closed);
      continue;
    }
    selected += 1;
    const taint = repellingTaint(node.spec?.taints ?? [], needs.tolerations);
    if (taint !== undefined) {
      count(`with taint ${taintText(taint).slice(0, MOST_TAINT_LENGTH)}`);
      continue;
    }
    tolerated += 1;
    const allocatable = allocatableOf(node);
    for (const resource in allocatable) {
      largest[resource] = Math.max(largest[resource] ?? 0, allocatable[resource] ?? 0);
    }
    large ||= isWithin(needs.requests, allocatable);
  }
  return { nodes: all, selected, tolerated, largest, large, against };
}

/** Of nodes that take no pods the host knows only how many they are: such a node has no metadata here. */
function untold({ metadata }: KubeNode): string | undefined {
  return metadata === undefined ? "cordoned or not ready" : undefined;
}

/** Why the node takes no new pods at all; undefined when it does. What its taints keep off is each pod's own question. */
export function closedBy(node: KubeNode): string | undefined {
  if (node.spec?.unschedulable === true) return "cordoned";
  return isNodeReady(node) ? undefined : "not ready";
}

// Each kind of pod is held against every node: their quantities are read once.
const allocatables = new WeakMap<KubeNode, Amounts>();

function allocatableOf(node: KubeNode): Amounts {
  let allocatable = allocatables.get(node);
  if (allocatable === undefined) {
    allocatable = parseAmounts(node.status?.allocatable);
    allocatables.set(node, allocatable);
  }
  return allocatable;
}

/** True when the node says that it is Ready. */
export function isNodeReady({ status }: KubeNode): boolean {
  return status?.conditions?.some(({ type, status: state }) => type === "Ready" && state === "True") ?? false;
}

function isSelected({ nodeSelector, terms }: NodeNeeds, { metadata }: KubeNode): boolean {
  const labels = metadata?.labels ?? {};
  if (Object.entries(nodeSelector).some(([key, value]) => labels[key] !== value)) return false;
  return terms === undefined || terms.some((term) => termMatches(term, labels, metadata?.name ?? ""));
}

function termMatches(term: NodeSelectorTerm, labels: Readonly<Record<string, string>>, name: string): boolean {
  if (isEmptyTerm(term)) return false;
  const { matchExpressions = [], matchFields = [] } = term;
  return (
    holds(matchExpressions, labels) &&
    // The only field that nodes can be selected by.
    holds(matchFields, { "metadata.name": name })
  );
}

function holds(
  expressions: readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] }[],
  labels: Readonly<Record<string, string>>,
): boolean {
  return expressions.every(
    (expression) => !isKnownExpression(expression) || selectorMatches([requirementOf(expression)], labels),
  );
}
