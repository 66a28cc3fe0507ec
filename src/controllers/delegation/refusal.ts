import { isKubeError } from "../../kube/errors.ts";
import type { RefusalReason } from "../../placement/candidate.ts";

/** Why a member's API server refused a delegate; undefined when the same request may work next time. */
export function refusalOf(error: unknown): { reason: RefusalReason; message: string } | undefined {
  if (!isKubeError(error, "BadRequest", "Forbidden", "NotFound", "MethodNotAllowed", "Unprocessable", "TooLarge")) {
    return undefined;
  }
  // The member's controller manager makes the default account some moments after the namespace.
  if (/serviceaccount "default" not found/.test(error.detail)) return undefined;
  return { reason: "RefusedByMember", message: `its API server refused the pod: ${error.detail}` };
}
