import { parsePlacement } from "../src/api/annotations.ts";
import type { AdmissionRequest } from "./admission-review.ts";
import { allowed, denied, type Verdict } from "./responses.ts";

/** Refuses a namespace whose defaults for its pods do not parse. */
export function validateNamespace({ object }: AdmissionRequest): Verdict {
  const parsed = parsePlacement(object?.metadata.annotations ?? {});
  if (!parsed.ok) return denied(parsed.problems.map(({ message }) => `metadata.annotations: ${message}`));
  const { delegate } = parsed.placement;
  if (delegate === undefined) return allowed();
  return denied([
    "metadata.annotations: legation.dev/delegate: a namespace says which pods are delegated by its label; " +
      'write the label legation.dev/delegation: "annotated" or "all"',
  ]);
}
