import { isEmptyTerm } from "../api/cluster-affinity.ts";
import { defined } from "../api/defined.ts";
import type { KubeNode, NodeSelectorTerm, Pod, Toleration } from "../api/kubernetes.ts";
import { isKnownExpression, requirementOf } from "../api/label-expressions.ts";
import { selectorMatches } from "../api/label-selector.ts";
import { memoized } from "../api/memoized.ts";
import { type Amounts, isWithin, parseAmounts } from "../api/quantity.ts";
import { isOverflow } from "../pods/overflow.ts";
import { repellingTaint, taintText } from "../pods/scheduling.ts";

export interface NodeRequirements {
  /** Equal for pods with the same requirements. */
  readonly kind: string;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required node affinity: one term must match. Undefined means any node. */
  readonly terms?: readonly NodeSelectorTerm[];
  /** The pod's own tolerations, and those that the member's API server may add. */
  readonly tolerations: readonly Toleration[];
  readonly requests: Amounts;
}

/** The judgement of a member's nodes for a pod. */
export interface NodeFit {
  readonly nodes: number;
  /** Nodes of these that take new pods. */
  readonly selected: number;
  readonly tolerated: number;
  readonly largest: Amounts;
  readonly large: boolean;
  readonly against: ReadonlyMap<string, number>;
}

export const NOT_SELECTED = "not selected by the pod";

// Members write taints of any length, and the host stores the messages.
const MOST_REASONS = 8;
const MOST_TAINT_LENGTH = 120;
const OTHERWISE = "otherwise";

/** `elsewhere`: resources that are no node's. */
export function nodeRequirements(pod: Pod, all: Amounts, elsewhere?: ReadonlySet<string>): NodeRequirements {
  const { spec } = pod;
  const requests =
    elsewhere === undefined ? all : Object.fromEntries(Object.entries(all).filter(([name]) => !elsewhere.has(name)));
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const needs = {
    nodeSelector: spec?.nodeSelector ?? {},
    ...defined({ terms }),
    // A pod in overflow mode cannot move on, so possible tolerations do not count.
    tolerations: [...(spec?.tolerations ?? []), ...(isOverflow(pod) ? [] : deviceTolerations(all))],
    requests,
  };
  return { kind: JSON.stringify(needs), ...needs };
}

/** The plugin ExtendedResourceToleration adds these on GKE, EKS and AKS. */
function deviceTolerations(requests: Amounts): Toleration[] {
  return Object.keys(requests)
    .filter(isExtended)
    .map((key) => ({ key, operator: "Exists", effect: "NoSchedule" }));
}

/** Reports whether the resource is an extended one (IsExtendedResourceName in pkg/apis/core/helper). */
function isExtended(resource: string): boolean {
  return resource.includes("/") && !resource.includes("kubernetes.io/") && !resource.startsWith("requests.");
}

/** Judges a member's nodes like kube-scheduler, by names, labels, taints and resources. */
export function fitOf(needs: NodeRequirements, nodes: Iterable<KubeNode>): NodeFit {
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
    const closed = unlistedReason(node) ?? (isSelected(needs, node) ? closedBy(node) : NOT_SELECTED);
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

/** The host knows only the number of nodes that take no pods. */
function unlistedReason({ metadata }: KubeNode): string | undefined {
  return metadata === undefined ? "cordoned or not ready" : undefined;
}

/** Taints are judged per pod. */
export function closedBy(node: KubeNode): string | undefined {
  if (node.spec?.unschedulable === true) return "cordoned";
  return isNodeReady(node) ? undefined : "not ready";
}

// Quantities are parsed once, since every kind of pod is compared with every node.
const allocatableOf = memoized(({ status }: KubeNode) => parseAmounts(status?.allocatable));

export function isNodeReady({ status }: KubeNode): boolean {
  return status?.conditions?.some(({ type, status: state }) => type === "Ready" && state === "True") ?? false;
}

function isSelected({ nodeSelector, terms }: NodeRequirements, { metadata }: KubeNode): boolean {
  const labels = metadata?.labels ?? {};
  if (Object.entries(nodeSelector).some(([key, value]) => labels[key] !== value)) return false;
  return terms === undefined || terms.some((term) => termMatches(term, labels, metadata?.name ?? ""));
}

function termMatches(term: NodeSelectorTerm, labels: Readonly<Record<string, string>>, name: string): boolean {
  if (isEmptyTerm(term)) return false;
  const { matchExpressions = [], matchFields = [] } = term;
  return (
    holds(matchExpressions, labels) &&
    // The only field that selects nodes.
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
