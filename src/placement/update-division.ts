import { byName } from "../api/json.ts";
import type { Replicas } from "./division.ts";
import type { DivisionOrder } from "./division-order.ts";

export interface UpdateInput {
  /** The workload's order over all clusters that count. */
  readonly order: DivisionOrder;
  readonly clusters: readonly string[];
  readonly choices: readonly string[];
  /** The owner's replicas, without the one to place. */
  readonly own: Replicas;
  /** The cluster of each replica of other owners, in the order of their deletion. */
  readonly leaving: readonly string[];
  /** The number of replicas that may go before the next comes, as seen during the update. */
  readonly atOnce: number;
}

interface Due {
  readonly from: number;
  readonly until: number;
}

/** Returns the next of the replica's division, unless another would be late to keep all owners within one. */
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

/** Returns a choice that keeps all within `off` while the first `gone` others go, by Hall's condition. */
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
  // Earliest due date first finds a way if there is one.
  const urgent = open.reduce((best, one) => (untilOf(due, one) < untilOf(due, best) ? one : best), first);
  return keeps(urgent) ? urgent : undefined;
}

function untilOf(due: ReadonlyMap<string, Due>, cluster: string): number {
  return due.get(cluster)?.until ?? Number.POSITIVE_INFINITY;
}

/** Checks all states of the others until `gone` of them are gone. */
function dues({ order, clusters, own, leaving }: UpdateInput, gone: number, off: number): Map<string, Due> {
  const others = countsOf(leaving);
  const within = countOf(own, clusters) + leaving.length + 2 * clusters.length;
  const positionOf = (cluster: string, nth: number): number =>
    nth <= 0 ? 0 : (order.position(cluster, nth, within) ?? Number.POSITIVE_INFINITY);
  const due = new Map<string, { from: number; until: number }>();
  for (const cluster of clusters) due.set(cluster, { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY });
  // A cluster's next replica is due soonest while all of the others are there, and latest when most are gone.
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

/** Reports whether the owner can end within one of its own division. */
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
  const counts: Record<string, number> = byName();
  for (const cluster of leaving) counts[cluster] = (counts[cluster] ?? 0) + 1;
  return counts;
}
