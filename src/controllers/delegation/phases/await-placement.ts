import type { Phase } from "../model/decision.ts";
import { quietFor, waitFor } from "../model/report.ts";
import { unknownPlacement } from "../model/view.ts";

// The watch shows a namespace some moments after a pod that was created with it.
const OPT_IN_QUIETLY_MS = 5000;

/** The namespace is not opted in, or the placement annotations cannot be read. */
export const awaitPlacement: Phase = (view, now) => {
  const unknown = unknownPlacement(view);
  if (unknown === undefined) return undefined;
  const quiet = view.invalid === undefined ? quietFor(OPT_IN_QUIETLY_MS, view, now) : undefined;
  return quiet ?? waitFor(unknown, view, now);
};
