import { isKubeError, isRefusal, type KubeError, mayBeStarting } from "../kube/errors.ts";
import type { RefusalReason } from "../placement/candidate.ts";
import type { DependencyKind } from "../pods/dependencies.ts";

/** A member whose answer may be another one in a moment is asked again for so long: most are. */
export const PASSES_MS = 10_000;

// Of the API server's own about a webhook, whatever code that one answered with.
const NOT_ADMITTED = /failed (?:calling|to call) webhook|^admission webhook ".*" denied the request/;

// Prefix of every built-in admission plugin's refusal (NewForbidden, k8s.io/apimachinery/pkg/api/errors). The name of a webhook or
// a policy stands before what it says, so neither can be mistaken for a plugin.
const FORBIDDEN = /^pods "[^"]*" is forbidden: /;

const OF_SPEC: readonly RegExp[] = [
  // k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go
  /^(?:exceeded|failed|status unknown for) quota: /,
  /^insufficient quota to consume: /,
  // k8s.io/kubernetes/plugin/pkg/admission: priority, runtimeclass, serviceaccount
  /^no PriorityClass with name /,
  /^pod rejected: RuntimeClass "[^"]*" not found$/,
  /^error looking up service account /,
];

/** Why a member does not get the pod. */
export interface PodRefusal {
  readonly reason: RefusalReason;
  readonly message: string;
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
  const message = `its API server failed before it was sent the pod (${error.verb} ${error.resource}): ${error.detail}`;
  return { reason: "RefusedByMember", message };
}

/**
 * True when a namespace of the cluster ends, for as long as something in it does. It is made again after that, but who can go elsewhere
 * need not wait for it.
 */
export function isNamespaceEnding(detail: string): boolean {
  return /because it is being terminated$/.test(detail);
}

/** True for a refusal by a quota that is full, or not counted yet. */
export function isOfQuota(detail: string): boolean {
  return /^(?:exceeded|status unknown for) quota: /.test(withoutName(detail));
}

/**
 * True for a refusal that holds for every pod of the namespace with the same spec. Anything else, a policy's or a webhook's denial above
 * all, may be for the labels, annotations or name of this one pod.
 */
export function isOfAllAlike(error: KubeError): boolean {
  const { detail, details, resource } = error;
  if (resource.startsWith("namespaces ") || details?.kind === "namespaces") return true;
  if (details?.causes.includes("NamespaceTerminating") === true || mayBeStarting(error)) return true;
  if (isKubeError(error, "TooManyRequests")) return !NOT_ADMITTED.test(detail);
  const words = withoutName(detail);
  return words !== detail && OF_SPEC.some((pattern) => pattern.test(words));
}

/**
 * True for a refusal by a quota whose figures may be old: a controller manager counts it anew some moments after it was made, or after a
 * pod of its namespace has ended (`endedLately`).
 */
export function mayQuotaLag(detail: string, endedLately: boolean): boolean {
  const words = withoutName(detail);
  return words.startsWith("status unknown for quota: ") || (endedLately && words.startsWith("exceeded quota: "));
}

/** True for a refusal that says nothing of the pod itself: its namespace ends there, or Legation's rights there are not known, or gone. */
export function isOfItsPlace(error: KubeError): boolean {
  return isNamespaceEnding(error.detail) || mayBeStarting(error);
}

/** True when a cluster's webhook did not answer, or denied with an error of its own. Admission comes before anything is stored: it was surely not done. */
export function failedAdmission(error: unknown): error is KubeError {
  return isKubeError(error, "ServerError") && NOT_ADMITTED.test(error.detail);
}

/** True when the namespace has no account yet: the member's controller manager makes it some moments after the namespace. */
function lacksDefaultAccount(error: unknown): error is KubeError {
  return isKubeError(error) && /serviceaccount "default" not found/.test(error.detail);
}

// In the words of the admission plugins ServiceAccount, Priority and RuntimeClass (k8s.io/kubernetes/plugin/pkg/admission).
const LACKED: readonly (readonly [DependencyKind, RegExp])[] = [
  ["ServiceAccount", /serviceaccount "[^"]*" not found/],
  ["PriorityClass", /\bno PriorityClass with name .* was found/],
  ["RuntimeClass", /\bRuntimeClass ".*" not found/],
];

/** Returns the kind of what the pod names and the cluster has not; undefined for any other error. */
export function lackedKind(error: unknown): DependencyKind | undefined {
  return isKubeError(error) ? LACKED.find(([, words]) => words.test(error.detail))?.[0] : undefined;
}

/** True when somebody deleted the namespace once more while the pod was being made. A member where it is not to be made says more. */
function lacksNamespace(error: unknown): error is KubeError {
  return isKubeError(error, "NotFound") && /^namespaces ".*" not found$/.test(error.detail);
}

function refusedFor({ detail }: KubeError): PodRefusal {
  return { reason: "RefusedByMember", message: `its API server refused the pod: ${withoutName(detail)}` };
}

/** The words alone: others may be told them, too. */
function withoutName(detail: string): string {
  return detail.replace(FORBIDDEN, "");
}
