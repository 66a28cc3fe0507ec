import type { Replicas } from "./division.ts";
import type { DivisionOrder } from "./division-order.ts";

/** What one more replica of an owner is placed by while other owners of the same workload shrink beside it. */
export interface UpdateInput {
  /** Of the clusters that count, for the workload as a whole. */
  readonly order: DivisionOrder;
  /** The clusters that count. */
  readonly clusters: readonly string[];
  /** Those of them that may have the replica. */
  readonly choices: readonly string[];
  /** The owner's replicas, without the one that is to be placed. */
  readonly own: Replicas;
  /** The cluster of each replica of the other owners, in the order in which they will go. */
  readonly leaving: readonly string[];
  /** How many replicas may go before the next comes: those that come and go at once in the update, as far as it has shown. */
  readonly atOnce: number;
}

/** When a cluster may have its next replica, and by when it must: numbers of the owner's replicas. */
interface Due {
  readonly from: number;
  readonly until: number;
}

/**
 * Where the next replica goes so that all owners together stay within one of their division, whatever number of the others
 * has gone by then, and the owner by itself is divided at the end: its own division's next cluster, unless another one
 * would then be late. Where limits make that impossible, what is near counts.
 */
export function nextInUpdate(input: UpdateInput): string | undefined {
  const { choices, leaving, atOnce } = input;
  const first = nextOfOwn(input, choices);
  const next = nextWithin(input, choices, leaving.length, 1);
  if (next !== undefined || first === undefined) return next;
  const ending = choices.filter((choice) => endsDivided(input, choice));
  if (ending.length === 0) return first;
  for (let off = 1; off <= leaving.length; off++) {
    const nearest = nextWithin(input, ending, Math.min(atOnce, leaving.length), off);
    if (nearest !== undefined) return nearest;
  }
  return nextOfOwn(input, ending);
}

/** A choice after which all can stay within `off` of the division while the first `gone` of the others go; by Hall's condition. */
function nextWithin(input: UpdateInput, choices: readonly string[], gone: number, off: number): string | undefined {
  const next = countOf(input.own, input.clusters) + 1;
  const due = dues(input, gone, off);
  const open = choices.filter((choice) => (due.get(choice)?.from ?? Number.POSITIVE_INFINITY) <= next);
  const keeps = (choice: string): boolean => {
    const others = [...due].flatMap(([cluster, { until }]) => (cluster === choice ? [] : [until]));
    return others.sort((a, b) => a - b).every((until, index) => until > next + index);
  };
  const first = nextOfOwn(input, open);
  if (first === undefined || keeps(first)) return first;
  // The earliest due date first finds a way wherever there is one.
  const urgent = open.reduce((best, one) => (untilOf(due, one) < untilOf(due, best) ? one : best), first);
  return keeps(urgent) ? urgent : undefined;
}

function untilOf(due: ReadonlyMap<string, Due>, cluster: string): number {
  return due.get(cluster)?.until ?? Number.POSITIVE_INFINITY;
}

/** Over all states that the others come through, from now until so many of them are gone. */
function dues({ order, clusters, own, leaving }: UpdateInput, gone: number, off: number): Map<string, Due> {
  const others = countsOf(leaving);
  const within = countOf(own, clusters) + leaving.length + 2 * clusters.length;
  const positionOf = (cluster: string, nth: number): number =>
    nth <= 0 ? 0 : (order.position(cluster, nth, within) ?? Number.POSITIVE_INFINITY);
  const due = new Map<string, { from: number; until: number }>();
  for (const cluster of clusters) due.set(cluster, { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY });
  // While a cluster keeps what it has of the others, its next one is due soonest when all of these are still there, and
  // may come latest when the most of them are gone.
  const begin = (cluster: string, left: number): void => {
    const entry = due.get(cluster);
    const has = (own[cluster] ?? 0) + (others[cluster] ?? 0);
    if (entry !== undefined) entry.until = Math.min(entry.until, positionOf(cluster, has + 1 + off) - left);
  };
  const end = (cluster: string, left: number): void => {
    const entry = due.get(cluster);
    const has = (own[cluster] ?? 0) + (others[cluster] ?? 0);
    if (entry !== undefined) entry.from = Math.max(entry.from, positionOf(cluster, has + 1 - off) - left);
  };
  let left = leaving.length;
  for (const cluster of clusters) begin(cluster, left);
  for (const cluster of leaving.slice(0, gone)) {
    end(cluster, left);
    left -= 1;
    others[cluster] = (others[cluster] ?? 0) - 1;
    begin(cluster, left);
  }
  for (const cluster of clusters) end(cluster, left);
  return due;
}

/** Whether the owner can still be within one of its own division when the others may all be gone. */
function endsDivided({ order, clusters, own, leaving, atOnce }: UpdateInput, choice: string): boolean {
  const has = countOf(own, clusters);
  const alone = has + 1 + Math.max(0, leaving.length - atOnce);
  let missing = 0;
  for (const cluster of clusters) {
    const count = (own[cluster] ?? 0) + (cluster === choice ? 1 : 0);
    const wanted = order.share(cluster, alone);
    if (count > wanted + 1) return false;
    missing += Math.max(0, wanted - 1 - count);
  }
  return missing <= alone - has - 1;
}

/** The next of the owner's own division. */
function nextOfOwn({ order, clusters, own, leaving }: UpdateInput, choices: readonly string[]): string | undefined {
  const within = countOf(own, clusters) + leaving.length + 2 * clusters.length;
  let next: string | undefined;
  let best = Number.POSITIVE_INFINITY;
  for (const choice of choices) {
    const position = order.position(choice, (own[choice] ?? 0) + 1, within) ?? Number.MAX_VALUE;
    if (position >= best) continue;
    best = position;
    next = choice;
  }
  return next;
}

function countOf(replicas: Replicas, clusters: readonly string[]): number {
  return clusters.reduce((sum, cluster) => sum + (replicas[cluster] ?? 0), 0);
}

function countsOf(leaving: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const cluster of leaving) counts[cluster] = (counts[cluster] ?? 0) + 1;
  return counts;
}
