import type { NodeKind } from "../api/cluster-status.ts";
import { byName } from "../api/json.ts";
import type { KubeNode, Taint } from "../api/kubernetes.ts";
import { type Amounts, formatAmounts, parseAmounts } from "../api/quantity.ts";
import { taintText } from "../pods/scheduling.ts";
import { closedBy, type NodeRequirements } from "./node-fit.ts";

/** A summary of a member's nodes. */
export interface NodeKinds {
  readonly kinds: readonly NodeKind[];
  /** Labels of nodes left out because they would make too many kinds. */
  readonly unlistedLabels: readonly string[];
}

// Bounds the Cluster's status, which etcd stores at every change.
const MOST_KINDS = 16;
const MOST_BYTES = 8192;
// Cloud nodes have some dozens of labels; more would cost the host time.
const MOST_LABELS = 200;
// Machines of one type differ by a few pages of memory.
const SAME_SIZE = Math.log(1.05);

interface Group {
  count: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly sizes: string;
  readonly allocatable: Record<string, number>;
}

/** Labels with the most values are left out first. Undefined if sizes and taints alone make too many kinds. */
export function nodeKindsOf(nodes: Iterable<KubeNode>): NodeKinds | undefined {
  const open = [...nodes].filter((node) => closedBy(node) === undefined);
  const values = valuesOf(open);
  if (values.size > MOST_LABELS) return undefined;
  const keys = [...values]
    .sort(([a, some], [b, more]) => more.size - some.size || (a < b ? -1 : 1))
    .map(([key]) => key);
  // Skips labels with more values than kinds are allowed, before any work.
  let fewest = keys.filter((key) => (values.get(key)?.size ?? 0) > MOST_KINDS).length;
  const groups = merged(open.map((node) => groupOf(node, new Set(keys.slice(0, fewest)))));
  const kindsWithout = (leftOut: number): NodeKind[] | undefined => {
    const unlisted = new Set(keys.slice(0, leftOut));
    const fewer = merged(groups.map((group) => ({ ...group, labels: without(group.labels, unlisted) })));
    if (fewer.length > MOST_KINDS) return undefined;
    const kinds = fewer.map(kindOf).sort(byText);
    return JSON.stringify(kinds).length <= MOST_BYTES ? kinds : undefined;
  };
  // Fewer labels make fewer kinds: finds the least number to leave out by bisection.
  let kinds = kindsWithout(fewest);
  if (kinds !== undefined) return { kinds, unlistedLabels: keys.slice(0, fewest).sort() };
  let most = keys.length;
  kinds = kindsWithout(most);
  while (kinds !== undefined && most - fewest > 1) {
    const half = Math.floor((fewest + most) / 2);
    const better = kindsWithout(half);
    if (better === undefined) fewest = half;
    else {
      most = half;
      kinds = better;
    }
  }
  return kinds === undefined ? undefined : { kinds, unlistedLabels: keys.slice(0, most).sort() };
}

/** `count` includes nodes that take no pods. */
export function nodesOf({ kinds }: NodeKinds, count: number): KubeNode[] {
  const nodes = kinds.flatMap(({ count: alike, labels = {}, taints = [], allocatable }) => {
    const node: KubeNode = {
      metadata: { labels },
      spec: { taints: taints.map((taint) => ({ ...taint })) },
      status: { allocatable, conditions: [{ type: "Ready", status: "True" }] },
    };
    return Array.from({ length: alike }, () => node);
  });
  return [...nodes, ...Array.from({ length: Math.max(0, count - nodes.length) }, () => ({}))];
}

export function untold(
  { nodeSelector, terms = [] }: NodeRequirements,
  { unlistedLabels }: NodeKinds,
): string | undefined {
  if (terms.some(({ matchFields = [] }) => matchFields.length > 0)) return "names of nodes";
  const asked = [
    ...Object.keys(nodeSelector),
    ...terms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key)),
  ];
  const key = asked.find((one) => unlistedLabels.includes(one));
  return key === undefined ? undefined : `label ${key} of nodes`;
}

function groupOf({ metadata, spec, status }: KubeNode, unlisted: ReadonlySet<string>): Group {
  const allocatable = parseAmounts(status?.allocatable);
  return {
    count: 1,
    labels: without(metadata?.labels ?? {}, unlisted),
    taints: [...(spec?.taints ?? [])].sort((a, b) => (taintText(a) < taintText(b) ? -1 : 1)),
    sizes: sizesOf(allocatable),
    allocatable,
  };
}

function sizesOf(amounts: Amounts): string {
  return Object.keys(amounts)
    .sort()
    .map((name) => `${name}=${Math.round(Math.log(Math.max(amounts[name] ?? 0, 1e-3)) / SAME_SIZE)}`)
    .join();
}

function merged(groups: readonly Group[]): Group[] {
  const known = new Map<string, Group>();
  for (const group of groups) {
    const labels = Object.entries(group.labels).sort(([a], [b]) => (a < b ? -1 : 1));
    const id = JSON.stringify([labels, group.taints.map(taintText), group.sizes]);
    const same = known.get(id);
    if (same === undefined) {
      known.set(id, { ...group, allocatable: byName(group.allocatable) });
      continue;
    }
    same.count += group.count;
    for (const name in group.allocatable) {
      same.allocatable[name] = Math.max(same.allocatable[name] ?? 0, group.allocatable[name] ?? 0);
    }
  }
  return [...known.values()];
}

function valuesOf(nodes: readonly KubeNode[]): Map<string, Set<string>> {
  const values = new Map<string, Set<string>>();
  for (const { metadata } of nodes) {
    for (const [key, value] of Object.entries(metadata?.labels ?? {})) {
      values.set(key, (values.get(key) ?? new Set<string>()).add(value));
    }
  }
  return values;
}

function without(labels: Readonly<Record<string, string>>, keys: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !keys.has(key)));
}

function kindOf({ count, labels, taints, allocatable }: Group): NodeKind {
  const listed = taints.map(({ key, value = "", effect }) => ({ key, ...(value === "" ? {} : { value }), effect }));
  return {
    count,
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(listed.length === 0 ? {} : { taints: listed }),
    allocatable: formatAmounts(allocatable),
  };
}

function byText(a: NodeKind, b: NodeKind): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}
