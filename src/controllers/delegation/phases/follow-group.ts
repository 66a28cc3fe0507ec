import type { Phase } from "../model/decision.ts";
import { quietFor } from "../model/report.ts";

// A pod follows the first of its group within moments. What takes longer is worth a condition and an event.
const FOLLOW_QUIETLY_MS = 5000;

/** Another pod of the group is being placed, and this one follows it. */
export const followGroup: Phase = (view, now) =>
  view.follows === true ? quietFor(FOLLOW_QUIETLY_MS, view, now) : undefined;
