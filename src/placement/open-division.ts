import type { SchedulingPreferences } from "../api/preferences.ts";
import type { Amounts } from "../api/quantity.ts";
import type { Candidate } from "./candidate.ts";
import { type Division, divide, type Replicas, sum } from "./division.ts";
import { roomFor } from "./room.ts";

/** How an author wants a workload divided, and the members as they are for it. */
export interface OpenMembers {
  readonly preferences: SchedulingPreferences;
  /** The members that may have replicas now. */
  readonly candidates: readonly Candidate[];
  /** Those of them that get no more at present: they keep what they have. */
  readonly full: ReadonlySet<string>;
  /** Members that do not answer or are cordoned: what is there stays there. */
  readonly closed: ReadonlySet<string>;
  /** What one requests in a member where that is different; absent: nowhere. */
  readonly requestsIn?: (candidate: Candidate) => Amounts;
}

/** A workload's replicas, and the members that they are divided over. */
export interface OpenDivisionInput extends OpenMembers {
  /** How many there are to be, those in closed members included. */
  readonly total: number;
  /** Where those are that have a member. */
  readonly placed: Replicas;
  readonly requests: Amounts;
  /** `namespace/name` of the workload. */
  readonly key: string;
}

/** The division that moving replicas would lead to: what closed members leave, over those that are open, each up to its room. */
export function divideOpen(input: OpenDivisionInput): Division {
  const { total, placed, preferences, candidates, closed, key } = input;
  const staying = stayingIn(closed, placed);
  const { replicas, overflow } = divide({
    total: Math.max(0, total - sum(staying)),
    preferences,
    clusters: candidates.map(({ name }) => name),
    capacities: Object.fromEntries(candidates.map((candidate) => [candidate.name, capacityOf(candidate, input)])),
    key,
  });
  return { replicas: { ...replicas, ...staying }, overflow };
}

/** What is in closed members. */
export function stayingIn(closed: ReadonlySet<string>, placed: Replicas): Replicas {
  return Object.fromEntries(Object.entries(placed).filter(([member]) => closed.has(member)));
}

function capacityOf(candidate: Candidate, { placed, full, requests, requestsIn, key }: OpenDivisionInput): number {
  const has = placed[candidate.name] ?? 0;
  if (full.has(candidate.name)) return has;
  const [namespace] = key.split("/");
  return has + roomFor(requestsIn?.(candidate) ?? requests, candidate, namespace);
}
