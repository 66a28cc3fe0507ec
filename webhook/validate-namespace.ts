import { parsePlacement, type RequestedPlacement } from "../src/api/annotations.ts";
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
  const refused = NOT_ON_NAMESPACES.find(([field]) => parsed.placement[field] !== undefined);
  return refused === undefined ? allowed(placementWarnings(parsed.placement)) : denied([`annotation ${refused[1]}`]);
}

const NOT_ON_NAMESPACES: readonly (readonly [field: keyof RequestedPlacement, problem: string])[] = [
  // The webhook's selector sees a namespace's label, never its annotations.
  [
    "delegate",
    `${DELEGATE_ANNOTATION}: a namespace says by its label which pods are delegated; remove it and write ` +
      `the label ${DELEGATION_LABEL}: "annotated" (pods that ask), "all" or "overflow"`,
  ],
  [
    "mode",
    `${MODE_ANNOTATION}: a namespace says by its label when its pods are delegated; remove it and write ` +
      `the label ${DELEGATION_LABEL}: "overflow" (when this cluster has no room) or "all" (from the start)`,
  ],
  ["whole", `${WHOLE_KEY}: is read on Jobs alone, so it has no effect on a namespace; remove it and write it on Jobs`],
  [
    "failover",
    `${FAILOVER_ANNOTATION}: is written into tolerations when a pod is created, so it has no effect on a ` +
      "namespace; remove it and write it on pods or workloads",
  ],
];
