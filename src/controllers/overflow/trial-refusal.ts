import { whyNotMade } from "../../clusters/namespaces.ts";
import { isKubeError } from "../../kube/errors.ts";
import { missingObject } from "../../kube/messages.ts";
import type { Refusal } from "../../placement/candidate.ts";
import type { SharedBy } from "../delegation/model/decision.ts";
import { isOfAllAlike, refusalOf } from "../refusal.ts";
import { isUntryable } from "../try-delegate.ts";

/** A refusal of a member, and which other pods it holds for; `sharedBy` is absent where it is for none. */
export interface NotTaken {
  readonly refusal: Refusal;
  readonly sharedBy?: SharedBy;
}

/**
 * Why a member's API server would refuse a delegate, from its answer to a dry run; undefined when nothing speaks against it.
 * Throws what says nothing of the pod. What the pod's namespace there lacks as yet is made before the delegate.
 */
export function trialRefusal(member: string, error: unknown, makesNamespaces: boolean): NotTaken | undefined {
  if (isKubeError(error, "AlreadyExists")) {
    return { refusal: { cluster: member, reason: "NameTaken", message: "a pod of that name is there" } };
  }
  const refused = refusalOf(isKubeError(error, "NotFound") ? whyNotMade(error, member) : error);
  if (isKubeError(error)) {
    if (isKubeError(error, "NotFound") && makesNamespaces) return undefined;
    if (missingObject(error.detail)?.kind === "ServiceAccount") return undefined;
    if (isUntryable(error)) return undefined;
  }
  if (refused === undefined) throw error;
  const sharedBy = isKubeError(error) && isOfAllAlike(error) ? { sharedBy: "spec" as const } : {};
  return { refusal: { cluster: member, ...refused }, ...sharedBy };
}
