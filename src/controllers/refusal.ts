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

/** Why a member does not get the pod. */
export interface PodRefusal {
  readonly reason: RefusalReason;
  readonly message: string;
  /** Equal for refusals that differ in amounts only. Default: the message. */
  readonly dedupe?: string;
}

/** Why a member's API server refused a delegate; undefined when the same request may work next time. */
export function refusalOf(error: unknown): PodRefusal | undefined {
  if (!isRefusal(error) && !isKubeError(error, "NotFound") && !failedAdmission(error)) return undefined;
  return lacksDefaultAccount(error) ? undefined : refusedFor(error);
}

/** True for a creation's failure that may come after the delegate was stored. */
export function leavesDoubt(error: unknown): error is KubeError {
  return isKubeError(error, "AnswerLost", "ServerError", "BadAnswer") && !failedAdmission(error);
}

/**
 * Why a member counts as having refused a delegate once it goes on answering so: the same request may work in a moment. For a failure
 * after which the delegate is surely not there. Undefined when the answer is the member's word, or says nothing of the member.
 */
export function passingRefusalOf(error: unknown): PodRefusal | undefined {
  if (failedAdmission(error) || isKubeError(error, "TooManyRequests")) return refusedFor(error);
  if (lacksDefaultAccount(error) || lacksNamespace(error)) return refusedFor(error);
  if (!leavesDoubt(error)) return undefined;
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

/** True for a refusal that says nothing of the pod itself: its namespace ends there, or Legation's rights there are not known, or gone. */
export function isOfItsPlace(error: KubeError): boolean {
  return isNamespaceTerminating(error) || mayBeStarting(error);
}

/** Reports whether a webhook failed, or denied with an error of its own. Admission precedes storage: the pod was not stored. */
export function failedAdmission(error: unknown): error is KubeError {
  return isKubeError(error, "ServerError") && isOfWebhook(error.detail);
}

/** Reports whether the namespace has no account yet: the controller manager makes it some moments after the namespace. */
function lacksDefaultAccount(error: unknown): error is KubeError {
  const missing = isKubeError(error) ? missingObject(error.detail) : undefined;
  return missing?.kind === "ServiceAccount" && missing.name === "default";
}

/** Returns the kind of the object that the pod names and the cluster does not have; undefined for any other error. */
export function lackedKind(error: unknown): DependencyKind | undefined {
  return isKubeError(error) ? missingObject(error.detail)?.kind : undefined;
}

/** Reports whether the namespace was deleted again while the pod was being made. */
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
