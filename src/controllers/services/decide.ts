import type { Stored } from "../../api/kubernetes.ts";
import {
  isExported,
  isLike,
  type ServiceObject,
  serviceCopyPatch,
  shapeOf,
  toServiceCopy,
} from "../../copies/services.ts";
import { LINGERS_MS } from "../copying/idle.ts";
import { type Action, type Observed, settlement } from "./model.ts";

/** What to do for one copy now, and when to look again when nothing happens. */
export interface CopyDecision {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}

/** Makes the copy when a pod there needs it, keeps it like its source, and removes it with its source or the last pod. */
export function decide(observed: Observed, now: number): CopyDecision {
  const { ref, host, usable, copy, source, wanted, kept, idleSince, refused, contestedUntil } = observed;
  // What becomes usable or readable is an event of its own.
  if (!usable) return { actions: [], outcome: "Unreachable" };
  if (copy === undefined) {
    if (!wanted || source.state !== "present") return { actions: [], outcome: "Idle" };
    if (refused !== undefined && now < refused.until) return refusedUntil(refused.until);
    if (contestedUntil !== undefined) return { actions: [], outcome: "Contested", requeueAt: contestedUntil };
    const object = toServiceCopy(ref.kind, source.object, host);
    return { actions: [{ type: "create", ref, object, source: source.object }], outcome: "Copying" };
  }
  if (copy.metadata.deletionTimestamp !== undefined) return { actions: [], outcome: "Removing" };
  const remove = removal(observed, copy);
  if (source.state === "missing") return { actions: [remove], outcome: "Removing" };
  if (!kept) {
    const removeAt = idleSince + LINGERS_MS;
    if (now < removeAt) return { actions: [], outcome: "Idle", requeueAt: removeAt };
    return { actions: [remove], outcome: "Removing" };
  }
  if (source.state === "unknown") return { actions: [], outcome: "Waiting" };
  return decideKept(observed, copy, source.object, now);
}

function decideKept(
  observed: Observed,
  copy: Stored<ServiceObject>,
  source: Stored<ServiceObject>,
  now: number,
): CopyDecision {
  const { ref, host, refused, settled, leaving = false } = observed;
  const { kind } = ref;
  const { resourceVersion } = copy.metadata;
  // An answer that was lost leaves it open whether the copy goes: pods that came since get one that stays. And whether a Service
  // has an address cannot be changed in place. The copy is made again at once.
  if (leaving || shapeOf(kind, copy) !== shapeOf(kind, source)) {
    return { actions: [removal(observed, copy)], outcome: "Replacing" };
  }
  if (!isLike(kind, copy, source, host) && settled !== settlement(source, resourceVersion)) {
    if (refused !== undefined && now < refused.until) return refusedUntil(refused.until);
    const { contestedUntil } = observed;
    if (contestedUntil !== undefined) {
      // What it exports is not what they differ about.
      const { actions, requeueAt = contestedUntil } = decideExport(observed, copy, now);
      return { actions, outcome: "Contested", requeueAt: Math.min(requeueAt, contestedUntil) };
    }
    const patch = serviceCopyPatch(kind, copy, source, host);
    return { actions: [{ type: "patch", ref, patch, copy, source }], outcome: "Copying" };
  }
  return decideExport(observed, copy, now);
}

function decideExport({ ref, exported, exportDue }: Observed, copy: Stored<ServiceObject>, now: number): CopyDecision {
  if (exported.state === "present") {
    if (now < exportDue) return { actions: [], outcome: "InStep", requeueAt: exportDue };
    return { actions: [{ type: "export", ref, copy, source: exported.object }], outcome: "Exporting" };
  }
  if (exported.state === "missing" && isExported(copy)) {
    return { actions: [{ type: "unexport", ref, copy }], outcome: "Exporting" };
  }
  return { actions: [], outcome: "InStep" };
}

/** What it exports goes first: the member's garbage collector would leave it for a while, and then take a new copy's. */
function removal({ ref }: Observed, copy: Stored<ServiceObject>): Action {
  return { type: isExported(copy) ? "unexport" : "delete", ref, copy };
}

function refusedUntil(requeueAt: number): CopyDecision {
  return { actions: [], outcome: "Refused", requeueAt };
}
