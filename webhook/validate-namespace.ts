import { parsePlacement } from "../src/api/annotations.ts";
import {
  DELEGATE_ANNOTATION,
  DELEGATION_LABEL,
  FAILOVER_ANNOTATION,
  MODE_ANNOTATION,
  WHOLE_KEY,
} from "../src/api/keys.ts";
import type { AdmissionRequest } from "./admission-review.ts";
import { placementWarnings } from "./read-annotations.ts";
import { allowed, denied, type Verdict } from "./responses.ts";

export function validateNamespace({ object }: AdmissionRequest): Verdict {
  const parsed = parsePlacement(object?.metadata.annotations ?? {});
  if (!parsed.ok) return denied(parsed.problems.map(({ message }) => message));
  // The webhook's selector sees a namespace's label, never its annotations.
  if (parsed.placement.delegate !== undefined) {
    return denied([
      `annotation ${DELEGATE_ANNOTATION}: a namespace says by its label which pods are delegated; remove it and write ` +
        `the label ${DELEGATION_LABEL}: "annotated" (pods that ask), "all" or "overflow"`,
    ]);
  }
  if (parsed.placement.mode !== undefined) {
    return denied([
      `annotation ${MODE_ANNOTATION}: a namespace says by its label when its pods are delegated; remove it and write ` +
        `the label ${DELEGATION_LABEL}: "overflow" (when this cluster has no room) or "all" (from the start)`,
    ]);
  }
  if (parsed.placement.whole !== undefined) {
    return denied([
      `annotation ${WHOLE_KEY}: is read on Jobs alone, so it has no effect on a namespace; remove it and write it on Jobs`,
    ]);
  }
  if (parsed.placement.failover !== undefined) {
    return denied([
      `annotation ${FAILOVER_ANNOTATION}: is written into tolerations when a pod is created, so it has no effect on a ` +
        "namespace; remove it and write it on pods or workloads",
    ]);
  }
  return allowed(placementWarnings(parsed.placement));
}
