import { decided, type Phase } from "../model/decision.ts";
import { waitFor } from "../model/report.ts";

/** Waits for objects that the pod names and the host lacks, and for members that are still being read for the workload's division. */
export const awaitNeeds: Phase = (view, now) => {
  const { needs, settling } = view;
  if (needs?.state === "missing") return waitFor({ reason: needs.reason, message: needs.message }, view, now);
  // Events of their own tell when either has been read.
  return needs?.state === "awaited" || settling === true ? decided("Waiting", []) : undefined;
};
