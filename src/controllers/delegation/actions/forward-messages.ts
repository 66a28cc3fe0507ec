import { isKubeError, isRefusal } from "../../../kube/errors.ts";
import { deniedRight, isNotServed, quotaRefusal, withoutPodName } from "../../../kube/messages.ts";
import type { ForwardPatch } from "../../../pods/forward-record.ts";
import type { Purpose } from "../decision/write-purpose.ts";

/** Returns undefined when the same request may succeed next time. */
export function forwardRefusal(member: string, patch: ForwardPatch, error: unknown): string | undefined {
  if (!isRefusal(error) && !isKubeError(error, "NotFound")) return undefined;
  // The member denies a right of Legation, not the author's change.
  const lacksRight = error.code === "Forbidden" && deniedRight(error.detail)?.verb === "patch";
  const advice = lacksRight ? "; Legation's ClusterRole there lacks a right that manifests/member/role.yaml has" : "";
  return `Cluster ${member} did not take ${changeOf(patch)}: ${error.detail}${advice}`;
}

export function forwardUndone(member: string, patch: ForwardPatch, { parts }: Pick<Purpose, "parts">): string {
  const what = `${changeOf(patch)} (${parts.join(", ")})`;
  return `Cluster ${member}: another client there keeps undoing ${what}; they are left so for five minutes`;
}

/** Reports whether the API server lacks the subresource; the object itself may exist. */
export function isUnknownSubresource(error: unknown): boolean {
  return isKubeError(error, "NotFound") && isNotServed(error.detail);
}

const SUBRESOURCES = {
  resize: "the changed resources",
  ephemeralcontainers: "the ephemeral containers",
  status: "the conditions of the readiness gates",
} as const;

function changeOf({ subresource, body }: ForwardPatch): string {
  if (subresource !== undefined) return SUBRESOURCES[subresource];
  return body.spec === undefined ? "the changed labels and annotations" : "the changed spec";
}

/** Returns the kubelet's reason for a resize that it cannot do now, or never: a full quota may get room. */
export function resizeReason(error: unknown): "Deferred" | "Infeasible" {
  const isQuotaFull = isKubeError(error) && quotaRefusal(withoutPodName(error.detail)) === "exceeded";
  return isQuotaFull ? "Deferred" : "Infeasible";
}
