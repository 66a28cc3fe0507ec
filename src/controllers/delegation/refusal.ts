import { isKubeError } from "../../kube/errors.ts";
import type { RefusalReason } from "../../placement/candidate.ts";

/** An API server gives up what it has begun after its --request-timeout, a minute by default. */
export const CREATE_ENDS_MS = 60_000;

// Admission comes before anything is stored: a webhook of the member that does not answer is its "no" for now.
const UNASKED = /failed (calling|to call) webhook/;

/** Why a member's API server refused a delegate; undefined when the same request may work next time. */
export function refusalOf(error: unknown): { reason: RefusalReason; message: string } | undefined {
  const isNo =
    isKubeError(error, "BadRequest", "Forbidden", "NotFound", "MethodNotAllowed", "Unprocessable", "TooLarge") ||
    (isKubeError(error, "ServerError") && UNASKED.test(error.detail));
  if (!isNo) return undefined;
  // The member's controller manager makes the default account some moments after the namespace.
  if (/serviceaccount "default" not found/.test(error.detail)) return undefined;
  return { reason: "RefusedByMember", message: `its API server refused the pod: ${error.detail}` };
}
