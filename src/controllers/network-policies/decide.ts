import type { NetworkPolicy, Stored } from "../../api/kubernetes.ts";
import { isPolicyLike, policyCopyName, policyCopyPatch, toPolicyCopy } from "../../copies/network-policies.ts";
import { LINGERS_MS } from "../copying/idle.ts";
import type { Action, Observed } from "./model.ts";

/** What to do for the copies of one namespace now, and when to look again when nothing happens. */
export interface PoliciesDecision {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}

/** Gives the member what the host has while pods of the namespace are there, and takes it away after the last. */
export function decide(observed: Observed, now: number): PoliciesDecision {
  const { usable, sources, used } = observed;
  // What becomes usable or readable is an event of its own.
  if (!usable) return { actions: [], outcome: "Unreachable" };
  if (!used) return decideUnused(observed, now);
  return sources === undefined ? { actions: [], outcome: "Waiting" } : decideUsed(observed, sources, now);
}

function decideUnused({ place, copies, idleSince, refusedUntil }: Observed, now: number): PoliciesDecision {
  const standing = copies.filter(isStanding);
  if (standing.length > 0) {
    const removeAt = idleSince + LINGERS_MS;
    if (now < removeAt) return { actions: [], outcome: "Idle", requeueAt: removeAt };
    return { actions: standing.map((copy) => ({ type: "delete", place, copy })), outcome: "Removing" };
  }
  if (refusedUntil === undefined) return { actions: [], outcome: "Removing" };
  if (now < refusedUntil) return { actions: [], outcome: "Refused", requeueAt: refusedUntil };
  return { actions: [{ type: "reconsider", place }], outcome: "Refused" };
}

function decideUsed(observed: Observed, sources: readonly Stored<NetworkPolicy>[], now: number): PoliciesDecision {
  const { place, host, copies, leaving, restsUntil } = observed;
  const wanted = new Map(sources.map((source) => [policyCopyName(source, host.id), source]));
  const actions: Action[] = [];
  let requeueAt = Number.POSITIVE_INFINITY;
  for (const [name, source] of wanted) {
    const copy = copies.find(({ metadata }) => metadata.name === name);
    // That one has gone is an event of its own.
    if (copy !== undefined && !isStanding(copy)) continue;
    // An answer that was lost leaves it open whether the copy goes: pods that came since get one that stays.
    if (copy !== undefined && leaving.has(copy.metadata.uid)) actions.push({ type: "delete", place, copy });
    else if (copy === undefined || !isPolicyLike(copy, source, host)) {
      const rests = restsUntil(source);
      if (rests !== undefined && now < rests) requeueAt = Math.min(requeueAt, rests);
      else actions.push(written(observed, source, copy));
    }
  }
  const surplus = copies.filter((copy) => isStanding(copy) && !wanted.has(copy.metadata.name));
  actions.push(...surplus.map((copy) => ({ type: "delete", place, copy }) as const));
  if (requeueAt < Number.POSITIVE_INFINITY) return { actions, outcome: "Resting", requeueAt };
  return { actions, outcome: actions.length > 0 ? "Copying" : "InStep" };
}

function written({ place, host }: Observed, source: Stored<NetworkPolicy>, copy?: Stored<NetworkPolicy>): Action {
  if (copy === undefined) return { type: "create", place, object: toPolicyCopy(source, host), source };
  return { type: "patch", place, copy, patch: policyCopyPatch(copy, source, host), source };
}

function isStanding({ metadata }: Stored<NetworkPolicy>): boolean {
  return metadata.deletionTimestamp === undefined;
}
