import { isKubeError, isRefusal } from "../../../kube/errors.ts";
import { deniedRight, isNotServed, quotaRefusal, withoutPodName } from "../../../kube/messages.ts";
import type { ForwardPatch } from "../../../pods/forward-record.ts";
import type { Purpose } from "../model/purpose.ts";

/** What to tell the author of a change that the member will not take; undefined when the same request may work next time. */
export function forwardRefusal(member: string, patch: ForwardPatch, error: unknown): string | undefined {
  if (!isRefusal(error) && !isKubeError(error, "NotFound")) return undefined;
  // Legation's own rights there, not the author's pod.
  const lacksRight = error.code === "Forbidden" && deniedRight(error.detail)?.verb === "patch";
  const advice = lacksRight ? "; Legation's ClusterRole there lacks a right that manifests/member/role.yaml has" : "";
  return `Cluster ${member} did not take ${changeOf(patch)}: ${error.detail}${advice}`;
}

/** What to tell the author of a change that somebody in the member takes back each time. */
export function forwardUndone(member: string, patch: ForwardPatch, { parts }: Pick<Purpose, "parts">): string {
  const what = `${changeOf(patch)} (${parts.join(", ")})`;
  return `Cluster ${member}: somebody there keeps undoing ${what}; they are left so for five minutes`;
}

/** True when the server is too old for the subresource, or has it turned off: the object itself may be there. */
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

/** What a kubelet says of a resize that it cannot do now, or never: what fills a quota may end. */
export function resizeReason(error: unknown): "Deferred" | "Infeasible" {
  const isQuotaFull = isKubeError(error) && quotaRefusal(withoutPodName(error.detail)) === "exceeded";
  return isQuotaFull ? "Deferred" : "Infeasible";
}
