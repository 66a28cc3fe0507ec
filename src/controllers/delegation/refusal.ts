import { isKubeError, isRefusal, type KubeError } from "../../kube/errors.ts";
import type { RefusalReason } from "../../placement/candidate.ts";

/** An API server gives up what it has begun after its --request-timeout, a minute by default. */
export const CREATE_ENDS_MS = 60_000;

/** A member's webhook that does not answer is asked again for so long: most are back soon. */
export const UNASKED_MS = 10_000;

/** True when a webhook of the member did not answer. Admission comes before anything is stored: it was surely not done. */
export function isUnasked(error: unknown): error is KubeError {
  return isKubeError(error, "ServerError") && /failed (calling|to call) webhook/.test(error.detail);
}

/** Why a member's API server refused a delegate; undefined when the same request may work next time. */
export function refusalOf(error: unknown): { reason: RefusalReason; message: string } | undefined {
  if (!isRefusal(error) && !isKubeError(error, "NotFound") && !isUnasked(error)) return undefined;
  // The member's controller manager makes the default account some moments after the namespace.
  if (/serviceaccount "default" not found/.test(error.detail)) return undefined;
  return { reason: "RefusedByMember", message: `its API server refused the pod: ${error.detail}` };
}
