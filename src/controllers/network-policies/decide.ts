import type { NetworkPolicy, Stored } from "../../api/kubernetes.ts";
import { isPolicyLike, policyCopyName, policyCopyPatch, toPolicyCopy } from "../../pods/network-policies.ts";
import type { Action, Observed } from "./model.ts";

// Pods that follow each other find the same rules, though none of them is there for a moment between two.
const LINGERS_MS = 10_000;

/** What to do for the copies of one namespace now, and when to look again when nothing happens. */
export interface PoliciesDecision {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}

/** Gives the member what the host has while pods of the namespace are there, and takes it away after the last. */
export function decide(observed: Observed, now: number): PoliciesDecision {
  const { place, usable, sources, copies, used, idleSince } = observed;
  // What becomes usable or readable is an event of its own.
  if (!usable) return { actions: [], outcome: "Unreachable" };
  const standing = copies.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (used && sources === undefined) return { actions: [], outcome: "Waiting" };
  if (used) return decideUsed(observed, sources ?? [], standing, now);
  const removeAt = idleSince + LINGERS_MS;
  if (standing.length > 0 && now < removeAt) return { actions: [], outcome: "Idle", requeueAt: removeAt };
  return { actions: standing.map((copy) => ({ type: "delete", place, copy })), outcome: "Removing" };
}

function decideUsed(
  observed: Observed,
  sources: readonly Stored<NetworkPolicy>[],
  standing: readonly Stored<NetworkPolicy>[],
  now: number,
): PoliciesDecision {
  const { place, host, copies, restsUntil } = observed;
  const wanted = new Map(sources.map((source) => [policyCopyName(source, host.id), source]));
  const actions: Action[] = [];
  let requeueAt = Number.POSITIVE_INFINITY;
  // What allows comes before what forbids is gone, or the other way round: either is so on the host for a moment, too.
  for (const [name, source] of wanted) {
    const copy = copies.find(({ metadata }) => metadata.name === name);
    // That one has gone is an event of its own.
    if (copy?.metadata.deletionTimestamp !== undefined) continue;
    if (copy !== undefined && isPolicyLike(copy, source, host)) continue;
    const rests = restsUntil(source);
    if (rests !== undefined && now < rests) requeueAt = Math.min(requeueAt, rests);
    else if (copy === undefined) actions.push({ type: "create", place, object: toPolicyCopy(source, host), source });
    else actions.push({ type: "patch", place, copy, patch: policyCopyPatch(copy, source, host), source });
  }
  const surplus = standing.filter(({ metadata }) => !wanted.has(metadata.name));
  actions.push(...surplus.map((copy) => ({ type: "delete", place, copy }) as const));
  const outcome = actions.length > 0 ? "Copying" : requeueAt < Number.POSITIVE_INFINITY ? "Resting" : "InStep";
  return { actions, outcome, ...(requeueAt < Number.POSITIVE_INFINITY ? { requeueAt } : {}) };
}
