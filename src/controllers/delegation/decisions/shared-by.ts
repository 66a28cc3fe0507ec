import type { Pod } from "../../../api/kubernetes.ts";
import { isGated, unschedulableMessage } from "../../../pods/phase.ts";
import type { SharedBy } from "./model.ts";

// Reasons of kube-scheduler's plugins that compare labels of pods: pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread}.
const BY_LABELS = /affinity rules|pod topology spread constraints/;

/**
 * Which other pods share that a member's scheduler has found no node for this delegate. Undefined: no other. Whoever gated it, or
 * schedules it in the place of kube-scheduler, may have decided by anything.
 */
export function unschedulableFor(delegate: Pod): SharedBy | undefined {
  if (isGated(delegate)) return undefined;
  const message = unschedulableMessage(delegate);
  // A scheduler that does not answer is one that the spec names.
  if (message === undefined) return "spec";
  if ((delegate.spec?.schedulerName ?? "default-scheduler") !== "default-scheduler") return undefined;
  return BY_LABELS.test(message) ? "labels" : "spec";
}
