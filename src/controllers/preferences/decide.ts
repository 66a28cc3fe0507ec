import { byName } from "../../api/json.ts";
import { preferencesFor, type SchedulingPreferences } from "../../api/preferences.ts";
import { divisionShares, type Replicas, sum } from "../../placement/division.ts";
import { DivisionOrder } from "../../placement/division-order.ts";
import { divideOpen, stayingIn } from "../../placement/open-division.ts";
import { type Decision, lookAgain } from "../../runtime/requeue.ts";
import type { Action, Observed, Replica } from "./model.ts";

// The share of replicas that moves at a time; at least one does.
const MOVED_AT_A_TIME = 0.1;
// Corrections of deletion costs are rare and never urgent.
const COSTS_AT_A_TIME = 50;
// No event of the remaining ReplicaSet tells the end of an update.
const UPDATED_MS = 10_000;
// Replicas by which a workload may be off its division in an update, whatever is done.
const OFF_IN_UPDATE = 1;

export type PreferencesDecision = Decision<Action, "Moving" | "Ordering" | "Changing" | "Divided">;

/** Keeps deletion costs such that scaling down keeps the division. */
export function decide(observed: Observed, now: number): PreferencesDecision {
  // An event tells of each replica that is placed or ready, and of each member that is read.
  if (observed.waiting > 0 || observed.syncing) return { actions: [], outcome: "Changing" };
  if (observed.replacingUntil !== undefined) {
    return { actions: [], outcome: "Changing", requeueAt: observed.replacingUntil };
  }
  const moves = movesOf(observed, now);
  if (moves.length > 0) return { actions: moves, outcome: "Moving" };
  // During an update the deletion order reverses the order of creation, so that a rollback keeps the division, too.
  if (observed.others !== undefined) return { actions: [], outcome: "Changing", requeueAt: now + UPDATED_MS };
  const costs = observed.undivided === true ? [] : costsOf(observed).slice(0, COSTS_AT_A_TIME);
  const heldUntil = Object.values(observed.heldMoves).flatMap(({ until }) => (until > now ? [until] : []));
  return {
    actions: costs,
    outcome: costs.length > 0 ? "Ordering" : "Divided",
    ...lookAgain(...heldUntil),
  };
}

/** Each eviction is for a place in another member. */
function movesOf(observed: Observed, now: number): Action[] {
  const { preferences, movable, replicas, closed, others, undivided } = observed;
  const here = replicas.filter(({ member }) => !closed.has(member));
  const rebalances = preferences.rebalance && others?.larger !== true;
  if (!movable || !(rebalances || here.some(({ excluded }) => excluded))) return [];
  // Replicas that may not stay leave without becoming ready first.
  if ((others?.unready ?? 0) > 0 || here.some(({ ready, excluded }) => !ready && excluded !== true)) return [];
  const sets = [countsOf(replicas), ...(others?.placed ?? [])];
  const placed = together(sets);
  const total = sum(placed);
  const open = total - sum(stayingIn(closed, placed));
  let budget = Math.max(1, Math.floor(open * MOVED_AT_A_TIME));
  const held = Object.entries(observed.heldMoves).flatMap(([member, { until }]) => (now < until ? [member] : []));
  const full = new Set([...observed.full, ...held]);
  const divided = (of: Replicas): Replicas => divideOpen({ ...observed, total: sum(of), placed: of, full }).replicas;
  const ideal = divided(placed);
  const names = observed.candidates.map(({ name }) => name);
  // Limits count per ReplicaSet: replicas that are right by them are not moved for the sum.
  const apart = others !== undefined && hasLimits(preferences, names) ? together(sets.map(divided)) : ideal;
  const gains = names.flatMap((name) =>
    Array.from({ length: Math.max(0, (ideal[name] ?? 0) - (placed[name] ?? 0)) }, () => name),
  );
  const actions: Action[] = [];
  const excluded = new Set(here.flatMap((replica) => (replica.excluded === true ? [replica.member] : [])));
  const firstLeft = (a: string, b: string): number =>
    Number(excluded.has(b)) - Number(excluded.has(a)) || over(b) - over(a) || (a < b ? -1 : 1);
  for (const member of Object.keys(placed).sort(firstLeft)) {
    const surplus = rebalances ? over(member) : 0;
    const leaving = here.filter((replica) => replica.member === member).sort(firstToLeave);
    for (const [index, { uid, key: replicaKey, ...replica }] of leaving.entries()) {
      if (replica.excluded !== true && index >= surplus) break;
      const to = gains.shift();
      if (to === undefined || budget === 0) return actions;
      budget -= 1;
      const target = undivided === true ? {} : { to };
      actions.push({ type: "evict", uid, key: replicaKey, from: member, ...target });
    }
  }
  return actions;

  function over(member: string): number {
    return (
      (placed[member] ?? 0) -
      Math.max(ideal[member] ?? 0, apart[member] ?? 0) -
      (others === undefined ? 0 : OFF_IN_UPDATE)
    );
  }
}

/** Replicas that may not stay go before others, and of these the ones that are not ready. */
function firstToLeave(a: Replica, b: Replica): number {
  const rank = ({ excluded, ready }: Replica): number => (excluded === true ? (ready ? 1 : 0) : 2);
  return rank(a) - rank(b) || firstToGo(a, b);
}

/** The replicas furthest above their share go first. */
function costsOf({ preferences, key, replicas, candidates }: Observed): Action[] {
  const managed = replicas.filter(({ cost, costed }) => costed || cost !== undefined);
  const order = new DivisionOrder(
    divisionShares(
      preferences,
      candidates.map(({ name }) => name),
      { key },
    ),
  );
  const positions: { readonly replica: Replica; readonly position: number }[] = [];
  for (const member of Object.keys(countsOf(managed))) {
    const own = managed.filter((replica) => replica.member === member).sort((a, b) => firstToGo(b, a));
    for (const [index, replica] of own.entries()) {
      // Replicas outside the division go first.
      const position = order.position(member, index + 1, managed.length) ?? managed.length + index + 1;
      positions.push({ replica, position });
    }
  }
  positions.sort((a, b) => a.position - b.position);
  const ordered = positions.every(({ replica: { cost }, position }, index) => {
    const before = positions[index - 1];
    if (cost === undefined) return false;
    return before === undefined || before.position === position || cost < (before.replica.cost ?? 0);
  });
  if (ordered) return [];
  return positions.flatMap(({ replica: { uid, resourceVersion, key: replicaKey, cost }, position }) =>
    cost === -position ? [] : [{ type: "cost", uid, resourceVersion, key: replicaKey, cost: -position }],
  );
}

function firstToGo(a: Replica, b: Replica): number {
  const least = (a.cost ?? Number.NEGATIVE_INFINITY) - (b.cost ?? Number.NEGATIVE_INFINITY);
  if (a.cost !== b.cost && !Number.isNaN(least)) return least;
  if (a.createdAt !== b.createdAt) return a.createdAt > b.createdAt ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}

function hasLimits(preferences: SchedulingPreferences, members: readonly string[]): boolean {
  return members.some((member) => {
    const { minReplicas = 0, maxReplicas } = preferencesFor(preferences, member) ?? {};
    return minReplicas > 0 || maxReplicas !== undefined;
  });
}

function together(parts: readonly Replicas[]): Record<string, number> {
  const all: Record<string, number> = byName();
  for (const part of parts) {
    for (const [member, count] of Object.entries(part)) all[member] = (all[member] ?? 0) + count;
  }
  return all;
}

function countsOf(replicas: readonly Replica[]): Record<string, number> {
  const counts: Record<string, number> = byName();
  for (const { member } of replicas) counts[member] = (counts[member] ?? 0) + 1;
  return counts;
}
