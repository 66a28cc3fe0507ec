import { DELEGATION_LABEL } from "../../../api/keys.ts";
import type { Observed } from "./model.ts";

/** What keeps Legation from knowing where the author and the namespace's operator want the pod. */
export function unknownPlacement({
  ref,
  invalid,
  optedIn,
}: Observed): { readonly reason: string; readonly message: string } | undefined {
  if (invalid !== undefined) return { reason: "InvalidPlacement", message: invalid };
  if (optedIn !== false) return undefined;
  const message =
    `namespace ${ref.namespace} has no label ${DELEGATION_LABEL} any more, by which its pods are delegated; ` +
    "write it again, or delete the pod";
  return { reason: "NotOptedIn", message };
}
