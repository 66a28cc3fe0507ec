import { decided, type Phase } from "../model/decision.ts";
import { waitFor } from "../model/waiting-reason.ts";

/** What the pod names of its namespace must exist on the host, and the members that its workload is divided over must have been read. */
export const awaitNeeds: Phase = (view, now) => {
  const { needs, settling } = view;
  if (needs?.state === "missing") return waitFor({ reason: needs.reason, message: needs.message }, view, now);
  // Events of their own tell when either has been read.
  return needs?.state === "awaited" || settling === true ? decided("Waiting", []) : undefined;
};
