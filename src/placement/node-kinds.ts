import type { NodeKind } from "../api/cluster.ts";
import type { KubeNode, Taint } from "../api/kubernetes.ts";
import { type Amounts, formatAmounts, parseAmounts } from "../api/quantity.ts";
import { taintText } from "../pods/tolerations.ts";
import { closedBy, type NodeNeeds } from "./node-fit.ts";

/** The nodes of a member in few words. */
export interface NodeKinds {
  readonly kinds: readonly NodeKind[];
  /** Labels that nodes have and no kind tells, since they would make too many. */
  readonly unlistedLabels: readonly string[];
}

// They are written with every change of a Cluster's status, and kept in etcd.
const MOST_KINDS = 16;
const MOST_BYTES = 8192;
// Nodes of clouds have some dozens. A member that sends thousands must cost its host nothing.
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

/**
 * What a member's nodes that take pods are like, for the host: those alike in labels, taints and size together. Labels
 * with the most values are left out first; undefined when sizes and taints alone make too many kinds, or labels are so
 * many that naming those would be too long.
 */
export function nodeKindsOf(nodes: Iterable<KubeNode>): NodeKinds | undefined {
  const open = [...nodes].filter((node) => closedBy(node) === undefined);
  const values = valuesOf(open);
  if (values.size > MOST_LABELS) return undefined;
  const keys = [...values]
    .sort(([a, some], [b, more]) => more.size - some.size || (a < b ? -1 : 1))
    .map(([key]) => key);
  // A label with more values than there may be kinds is left out in any case, before work is done for it.
  let fewest = keys.filter((key) => (values.get(key)?.size ?? 0) > MOST_KINDS).length;
  const groups = merged(open.map((node) => groupOf(node, new Set(keys.slice(0, fewest)))));
  const told = (leftOut: number): NodeKind[] | undefined => {
    const unlisted = new Set(keys.slice(0, leftOut));
    const fewer = merged(groups.map((group) => ({ ...group, labels: without(group.labels, unlisted) })));
    if (fewer.length > MOST_KINDS) return undefined;
    const kinds = fewer.map(kindOf).sort(byText);
    return JSON.stringify(kinds).length <= MOST_BYTES ? kinds : undefined;
  };
  // The more are left out, the fewer kinds there are: the least that is enough is found by halving.
  let kinds = told(fewest);
  if (kinds !== undefined) return { kinds, unlistedLabels: keys.slice(0, fewest).sort() };
  let most = keys.length;
  kinds = told(most);
  while (kinds !== undefined && most - fewest > 1) {
    const half = Math.floor((fewest + most) / 2);
    const better = told(half);
    if (better === undefined) fewest = half;
    else {
      most = half;
      kinds = better;
    }
  }
  return kinds === undefined ? undefined : { kinds, unlistedLabels: keys.slice(0, most).sort() };
}

/** Nodes as they may be that have these kinds; `count` is how many there are, those that take no pods among them. */
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

/** The first thing that a pod wants of its node and kinds cannot tell; undefined when they tell all. */
export function untold({ nodeSelector, terms = [] }: NodeNeeds, { unlistedLabels }: NodeKinds): string | undefined {
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

/** Those that are alike as one, as large as the largest of them. */
function merged(groups: readonly Group[]): Group[] {
  const known = new Map<string, Group>();
  for (const group of groups) {
    const labels = Object.entries(group.labels).sort(([a], [b]) => (a < b ? -1 : 1));
    const id = JSON.stringify([labels, group.taints.map(taintText), group.sizes]);
    const same = known.get(id);
    if (same === undefined) {
      known.set(id, { ...group, allocatable: { ...group.allocatable } });
      continue;
    }
    same.count += group.count;
    for (const name in group.allocatable) {
      same.allocatable[name] = Math.max(same.allocatable[name] ?? 0, group.allocatable[name] ?? 0);
    }
  }
  return [...known.values()];
}

/** The values of each label. */
function valuesOf(nodes: readonly KubeNode[]): Map<string, Set<string>> {
  const values = new Map<string, Set<string>>();
  for (const { metadata } of nodes) {
    for (const [key, value] of Object.entries(metadata?.labels ?? {})) {
      const known = values.get(key);
      if (known === undefined) values.set(key, new Set([value]));
      else known.add(value);
    }
  }
  return values;
}

function without(labels: Readonly<Record<string, string>>, keys: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !keys.has(key)));
}

function kindOf({ count, labels, taints, allocatable }: Group): NodeKind {
  const told = taints.map(({ key, value = "", effect }) => ({ key, ...(value === "" ? {} : { value }), effect }));
  return {
    count,
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(told.length === 0 ? {} : { taints: told }),
    allocatable: formatAmounts(allocatable),
  };
}

function byText(a: NodeKind, b: NodeKind): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}
