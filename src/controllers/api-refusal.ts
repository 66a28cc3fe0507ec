import type { DependencyKind } from "../copies/dependencies.ts";
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

export interface PodRefusal {
  readonly reason: RefusalReason;
  readonly message: string;
  /** Equal for refusals that differ in amounts only. Default: the message. */
  readonly dedupe?: string;
}

export function refusalOf(error: unknown): PodRefusal | undefined {
  if (!isRefusal(error) && !isKubeError(error, "NotFound") && !failedAdmission(error)) return undefined;
  return lacksDefaultAccount(error) ? undefined : refusedFor(error);
}

/** Reports whether the failed create may have stored the delegate. */
export function leavesUncertain(error: unknown): error is KubeError {
  return isKubeError(error, "AnswerLost", "ServerError", "BadAnswer") && !failedAdmission(error);
}

/** Only for failures after which the member certainly has no delegate. Undefined for a plain refusal. */
export function passingRefusalOf(error: unknown): PodRefusal | undefined {
  if (failedAdmission(error) || isKubeError(error, "TooManyRequests")) return refusedFor(error);
  if (lacksDefaultAccount(error) || lacksNamespace(error)) return refusedFor(error);
  if (!leavesUncertain(error)) return undefined;
  const message = `its API server failed before it was sent the pod (${error.verb} ${error.target}): ${error.detail}`;
  return { reason: "RefusedByMember", message };
}

/** Reports whether a quota is full, or not counted yet. */
export function isOfQuota(detail: string): boolean {
  const refusal = quotaRefusal(withoutPodName(detail));
  return refusal === "exceeded" || refusal === "unknown";
}

/** Reports whether the refusal holds for every pod with the same spec. A policy may object to this one's labels or name. */
export function isOfAllAlike(error: KubeError): boolean {
  const { detail, details, resource } = error;
  if (resource === "namespaces" || details?.kind === "namespaces") return true;
  if (isNamespaceTerminating(error) || mayBeStarting(error)) return true;
  if (isKubeError(error, "TooManyRequests")) return !isOfWebhook(detail);
  const words = pluginMessage(detail);
  return words !== undefined && (quotaRefusal(words) !== undefined || missingObject(words) !== undefined);
}

/** Reports whether a quota's figures may be old: a new one, or the end of a pod (`endedLately`), is counted moments later. */
export function mayQuotaLag(detail: string, endedLately: boolean): boolean {
  const refusal = quotaRefusal(withoutPodName(detail));
  return refusal === "unknown" || (endedLately && refusal === "exceeded");
}

/** Reports whether the refusal says nothing about the pod: its namespace terminates, or Legation lacks rights. */
export function isOfItsPlace(error: KubeError): boolean {
  return isNamespaceTerminating(error) || mayBeStarting(error);
}

/** Admission precedes storage: the pod was not stored. */
export function failedAdmission(error: unknown): error is KubeError {
  return isKubeError(error, "ServerError") && isOfWebhook(error.detail);
}

/** The controller manager creates the account some moments after the namespace. */
function lacksDefaultAccount(error: unknown): error is KubeError {
  const missing = isKubeError(error) ? missingObject(error.detail) : undefined;
  return missing?.kind === "ServiceAccount" && missing.name === "default";
}

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
