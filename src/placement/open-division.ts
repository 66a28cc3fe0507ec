import { byName } from "../api/json.ts";
import type { SchedulingPreferences } from "../api/preferences.ts";
import { type Amounts, ROUNDING } from "../api/quantity.ts";
import type { Candidate } from "./candidate.ts";
import { type Division, divide, type Replicas, sum } from "./division.ts";
import { hasRoom } from "./rank.ts";

export interface OpenMembers {
  readonly preferences: SchedulingPreferences;
  /** The members that may have replicas now. */
  readonly candidates: readonly Candidate[];
  /** Clusters of these that keep their replicas and get no more. */
  readonly full: ReadonlySet<string>;
  /** Members that are unreachable or cordoned: their replicas stay. */
  readonly closed: ReadonlySet<string>;
  readonly requestsIn?: (candidate: Candidate) => Amounts;
}

export interface OpenDivisionInput extends OpenMembers {
  /** Wanted replicas, those in closed members included. */
  readonly total: number;
  readonly placed: Replicas;
  readonly requests: Amounts;
  readonly key: string;
}

/** Closed members keep their replicas, open ones share the rest up to their room. */
export function divideOpen(input: OpenDivisionInput): Division {
  const { total, placed, preferences, candidates, closed, key } = input;
  const staying = stayingIn(closed, placed);
  const { replicas, shortfall } = divide({
    total: Math.max(0, total - sum(staying)),
    preferences,
    clusters: candidates.map(({ name }) => name),
    capacities: Object.fromEntries(candidates.map((candidate) => [candidate.name, totalsOf(candidate, input)])),
    key,
  });
  return { replicas: byName({ ...replicas, ...staying }), shortfall };
}

export function stayingIn(closed: ReadonlySet<string>, placed: Replicas): Replicas {
  return byName(Object.fromEntries(Object.entries(placed).filter(([member]) => closed.has(member))));
}

function totalsOf(candidate: Candidate, { placed, full, requests, requestsIn, key }: OpenDivisionInput): number {
  const has = placed[candidate.name] ?? 0;
  if (full.has(candidate.name)) return has;
  const [namespace] = key.split("/");
  return has + roomFor(requestsIn?.(candidate) ?? requests, candidate, namespace);
}

function roomFor(requests: Amounts, candidate: Candidate, namespace = ""): number {
  if (!hasRoom(requests, candidate)) return 0;
  const { allocatable, used, limits, usedIn } = candidate;
  const room = Math.max(1, fitting(requests, allocatable, used, 0));
  if (limits === undefined) return room;
  const allowed = fitting(requests, limits.total, usedIn?.() ?? used);
  return Math.max(0, Math.min(room, allowed, fitting(requests, limits.perNamespace, usedIn?.(namespace) ?? {})));
}

/** Resources without an amount count as `otherwise`. */
function fitting(requests: Amounts, amounts: Amounts, used: Amounts, otherwise = Number.POSITIVE_INFINITY): number {
  let count = Number.POSITIVE_INFINITY;
  for (const resource in requests) {
    const wanted = requests[resource] ?? 0;
    if (wanted === 0) continue;
    const left = (amounts[resource] ?? otherwise) - (used[resource] ?? 0);
    count = Math.min(count, Math.floor((left + ROUNDING) / wanted));
  }
  return count;
}
