import { isKubeError, isNamespaceTerminating, isRefusal, type KubeError, mayBeStarting } from "../kube/errors.ts";
import {
  isNamespaceMissing,
  isOfWebhook,
  missingObject,
  pluginMessage,
  quotaRefusal,
  withoutAmounts,
  withoutPodName,
} from "../kube/messages.ts";
import type { RefusalReason } from "../placement/candidate.ts";
import type { DependencyKind } from "../pods/dependencies.ts";

/** A reason not to give the pod to a member. */
export interface PodRefusal {
  readonly reason: RefusalReason;
  readonly message: string;
  /** Equal for refusals that differ in amounts only. Default: the message. */
  readonly dedupe?: string;
}

/** Returns why a member's API server refused a delegate. Undefined if the same request may succeed next time. */
export function refusalOf(error: unknown): PodRefusal | undefined {
  if (!isRefusal(error) && !isKubeError(error, "NotFound") && !failedAdmission(error)) return undefined;
  return lacksDefaultAccount(error) ? undefined : refusedFor(error);
}

/** Reports whether the failed create may have stored the delegate. */
export function leavesUncertain(error: unknown): error is KubeError {
  return isKubeError(error, "AnswerLost", "ServerError", "BadAnswer") && !failedAdmission(error);
}

/**
 * Returns the refusal that a failure becomes once it lasts, though the same request may succeed in a moment. Only for failures after
 * which the delegate is certainly not there. Undefined for a plain refusal, and for errors that say nothing about the member.
 */
export function passingRefusalOf(error: unknown): PodRefusal | undefined {
  if (failedAdmission(error) || isKubeError(error, "TooManyRequests")) return refusedFor(error);
  if (lacksDefaultAccount(error) || lacksNamespace(error)) return refusedFor(error);
  if (!leavesUncertain(error)) return undefined;
  const message = `its API server failed before it was sent the pod (${error.verb} ${error.target}): ${error.detail}`;
  return { reason: "RefusedByMember", message };
}

/** Reports whether a quota refuses the pod since it is full, or not counted yet. */
export function isOfQuota(detail: string): boolean {
  const refusal = quotaRefusal(withoutPodName(detail));
  return refusal === "exceeded" || refusal === "unknown";
}

/**
 * Reports whether the refusal holds for every pod of the namespace with the same spec. A policy or webhook may object to the labels,
 * annotations or name of this one pod.
 */
export function isOfAllAlike(error: KubeError): boolean {
  const { detail, details, resource } = error;
  if (resource === "namespaces" || details?.kind === "namespaces") return true;
  if (isNamespaceTerminating(error) || mayBeStarting(error)) return true;
  if (isKubeError(error, "TooManyRequests")) return !isOfWebhook(detail);
  const words = pluginMessage(detail);
  return words !== undefined && (quotaRefusal(words) !== undefined || missingObject(words) !== undefined);
}

/**
 * Reports whether a quota's figures may be old: a controller manager counts them some moments after the quota was made, or after a
 * pod of its namespace has ended (`endedLately`).
 */
export function mayQuotaLag(detail: string, endedLately: boolean): boolean {
  const refusal = quotaRefusal(withoutPodName(detail));
  return refusal === "unknown" || (endedLately && refusal === "exceeded");
}

/** Reports whether the refusal says nothing about the pod: its namespace terminates there, or Legation's rights are not loaded, or gone. */
export function isOfItsPlace(error: KubeError): boolean {
  return isNamespaceTerminating(error) || mayBeStarting(error);
}

/** Reports whether a webhook failed, or denied with an error of its own. Admission precedes storage: the pod was not stored. */
export function failedAdmission(error: unknown): error is KubeError {
  return isKubeError(error, "ServerError") && isOfWebhook(error.detail);
}

/** Reports whether the namespace has no account yet: the controller manager creates it some moments after the namespace. */
function lacksDefaultAccount(error: unknown): error is KubeError {
  const missing = isKubeError(error) ? missingObject(error.detail) : undefined;
  return missing?.kind === "ServiceAccount" && missing.name === "default";
}

/** Returns the kind of the object that the pod names and the cluster lacks. Undefined for any other error. */
export function lackedKind(error: unknown): DependencyKind | undefined {
  return isKubeError(error) ? missingObject(error.detail)?.kind : undefined;
}

/** Reports whether the namespace was deleted again during the create. */
function lacksNamespace(error: unknown): error is KubeError {
  return isKubeError(error, "NotFound") && isNamespaceMissing(error.detail);
}

function refusedFor({ detail }: KubeError): PodRefusal {
  const words = withoutPodName(detail);
  return {
    reason: "RefusedByMember",
    message: `its API server refused the pod: ${words}`,
    dedupe: withoutAmounts(words),
  };
}
