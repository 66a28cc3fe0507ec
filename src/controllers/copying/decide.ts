import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Action, Observed } from "./model.ts";

export interface CopyDecision<T extends KubeObject> {
  readonly actions: readonly Action<T>[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}

/** Users that follow each other share a copy. */
const UNUSED_COPY_KEPT_MS = 10_000;

export function decide<T extends KubeObject>(observed: Observed<T>, now: number): CopyDecision<T> {
  // A member that becomes usable is an event of its own.
  if (!observed.usable) return { actions: [], outcome: "Unreachable" };
  const { copy } = observed;
  return copy === undefined ? decideAbsent(observed, now) : decidePresent(observed, copy, now);
}

function decideAbsent<T extends KubeObject>(observed: Observed<T>, now: number): CopyDecision<T> {
  const { ref, source, use, held, refusedUntil } = observed;
  if (use.demand !== "needed" || source.state !== "present") {
    if (refusedUntil === undefined) return { actions: [], outcome: "Idle" };
    if (now < refusedUntil) return { actions: [], outcome: "Refused", requeueAt: refusedUntil };
    return { actions: [{ type: "reconsider", ref }], outcome: "Refused" };
  }
  if (held !== undefined) return { actions: [], outcome: held.reason, requeueAt: held.until };
  return { actions: [{ type: "create", ref, source: source.object }], outcome: "Copying" };
}

function decidePresent<T extends KubeObject>(observed: Observed<T>, copy: Stored<T>, now: number): CopyDecision<T> {
  const { ref, source, use, unusedSince, drift, leaving, held, contestedUntil } = observed;
  if (copy.metadata.deletionTimestamp !== undefined) return { actions: [], outcome: "Removing" };
  if (source.state === "missing" && use.outlivesSource !== true) return remove(observed, copy, "Removing", now);
  if (use.demand === "unused") {
    const removeAt = unusedSince + UNUSED_COPY_KEPT_MS;
    if (now < removeAt) return { actions: [], outcome: "Idle", requeueAt: removeAt };
    return remove(observed, copy, "Removing", now);
  }
  if (source.state === "unknown") return { actions: [], outcome: "Waiting" };
  // The response to an earlier deletion was lost, so the copy may still go: new users get one that stays.
  if (leaving === true && use.demand !== "frozen") return remove(observed, copy, "Replacing", now);
  if (source.state === "missing" || use.demand === "frozen") return inStep(observed);
  if (drift === "none") {
    if (contestedUntil === undefined) return inStep(observed);
    if (now < contestedUntil) return { actions: [], outcome: "Contested", requeueAt: contestedUntil };
  }
  // The write that left fields to another manager had no effect on them.
  const isHeld = held !== undefined && (drift !== "none" || held.reason !== "NoEffect");
  if (isHeld) return { actions: [], outcome: held.reason, requeueAt: held.until };
  if (drift === "immutable") {
    // The last user that ends is an event of its own.
    if (use.preventsReplacement === true) return { actions: [], outcome: "InUse" };
    return remove(observed, copy, "Replacing", now);
  }
  return { actions: [{ type: "patch", ref, source: source.object, copy }], outcome: "Copying" };
}

function inStep<T extends KubeObject>({ ref, refusedUntil, deletionRefusedUntil }: Observed<T>): CopyDecision<T> {
  // The refused write is not wanted any more.
  const wasRefused = refusedUntil !== undefined || deletionRefusedUntil !== undefined;
  return { actions: wasRefused ? [{ type: "reconsider", ref }] : [], outcome: "InStep" };
}

function remove<T extends KubeObject>(
  { ref, onHost, keptUntil = 0, deletionRefusedUntil = 0 }: Observed<T>,
  copy: Stored<T>,
  outcome: string,
  now: number,
): CopyDecision<T> {
  if (now < keptUntil) return { actions: [], outcome: "UsedByOthers", requeueAt: keptUntil };
  if (now < deletionRefusedUntil) return { actions: [], outcome: "Refused", requeueAt: deletionRefusedUntil };
  return { actions: [{ type: "delete", ref, copy, ...(onHost === undefined ? {} : { onHost }) }], outcome };
}
