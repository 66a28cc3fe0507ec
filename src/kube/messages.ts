/**
 * Messages of Kubernetes whose meaning no field of a Status carries. All patterns for such messages are in this file, each with its
 * source in k8s.io/kubernetes. Messages of Legation itself are never parsed.
 */

// apiserver/pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage. A kubelet quotes it with escaped quotes.
const DENIED_RIGHT = /\bUser \\?".*\\?" cannot (\S+) (?:resource|path) \\?"([^"\\]*)/;
// plugin/pkg/admission: what each plugin says before its informers have synced.
const NOT_READY = /: not yet ready to handle request$/;
// apimachinery/pkg/api/errors/errors.go, NewForbidden: the prefix of every built-in admission plugin. The name of a webhook or of a
// policy stands before its own words, so neither can be mistaken for a plugin.
const FORBIDDEN_POD = /^pods "[^"]*" is forbidden: /;
// apiserver/pkg/util/webhook/webhook.go, ErrCallingWebhook, whatever status the webhook itself answered with.
const WEBHOOK_FAILED = /failed (?:calling|to call) webhook/;
// apiserver/pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr and NewDryRunUnsupportedErr.
const WEBHOOK_DENIED = /^admission webhook ".*" denied the request/;
const WEBHOOK_NAME = /(?:^admission webhook|failed calling webhook) "([^"]+)"/;
const NO_DRY_RUN = /does not support dry run/;
// apiserver/pkg/admission/plugin/policy/validating/plugin.go: the policy's name comes first.
const POLICY_DENIED = /\bValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request/;
// pkg/proxy/util/utils.go, ErrAddressNotAllowed: API servers proxy to no loopback or link-local address.
const ADDRESS_NOT_ALLOWED = /\baddress not allowed\b/;
// apiserver/pkg/admission/plugin/resourcequota/controller.go, checkQuotas and CheckRequest.
const QUOTA = /^(exceeded|failed|status unknown for) quota: |^insufficient quota to consume: /;
// plugin/pkg/admission/serviceaccount/admission.go, Admit.
const NO_SERVICE_ACCOUNT = /\bserviceaccount "([^"]*)" not found/;
// plugin/pkg/admission/priority/admission.go, admitPod.
const NO_PRIORITY_CLASS = /\bno PriorityClass with name (.*) was found/;
// plugin/pkg/admission/runtimeclass/admission.go, prepareObjects.
const NO_RUNTIME_CLASS = /\bRuntimeClass "(.*)" not found/;
// apimachinery/pkg/api/errors/errors.go, NewNotFound.
const NO_NAMESPACE = /^namespaces ".*" not found$/;
// apimachinery/pkg/api/errors/errors.go, NewGenericServerResponse: no such API, or no such subresource.
const NO_SUCH_RESOURCE = /could not find the requested resource/;
// net/http/server.go of Go, NotFound: the API server's answer for a group or version that it does not serve.
const UNKNOWN_PATH = /^404 page not found\s*$/;
// apimachinery/pkg/api/errors/errors.go, NewInternalError: the prefix of a kubelet's message that the API server passes on.
const INTERNAL_ERROR = /^Internal error occurred: /;
// sigs.k8s.io/json/internal/golang/encoding/json/kubernetes_patch.go, saveStrictError: fields that strict decoding does not know.
const UNKNOWN_FIELD = /^unknown field "([^"]+)"$/;
// apimachinery/pkg/api/errors/errors.go, NewForbidden, for any resource.
const FORBIDDEN_OBJECT = /^[a-z.]+ "[^"]*" is forbidden: /;
// pkg/kubelet/server/server.go, InstallAuthFilter.
const KUBELET_FORBIDS = /Forbidden \(user=/;
// plugin/pkg/admission/limitranger/admission.go, mergePodResourceRequirements: the annotation that it writes onto pods.
const SET_BY_LIMIT_RANGER = /(?:^LimitRanger plugin set: |; )([^;]+?) (?:request|limit) for (?:init )?container /g;
// pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest.
const INSUFFICIENT = /\bInsufficient ([\w./-]*\w)/g;
// apimachinery/pkg/util/managedfields/internal/conflict.go, printManager.
const FIELD_MANAGER = /^conflict with "((?:[^"\\]|\\.)*)"/;
// pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, Permit.
const AWAITS_GANG = /\bwaiting for minCount pods from a gang to be scheduled\b/;
// pkg/scheduler/framework/plugins: reasons of interpodaffinity and podtopologyspread, which compare labels of pods.
const BY_POD_LABELS = /affinity rules|pod topology spread constraints/;

/** A right that an authorizer denies. */
export interface DeniedRight {
  readonly verb: string;
  /** Plural of the resource, with its subresource: `pods/eviction`. A path for what is no resource. */
  readonly resource: string;
}

/** Returns the right that the authorizer denied; undefined when the message is about something else. */
export function deniedRight(message: string): DeniedRight | undefined {
  const [, verb, resource] = DENIED_RIGHT.exec(message) ?? [];
  return verb === undefined || resource === undefined ? undefined : { verb, resource };
}

/** Reports whether an admission plugin waits for its informers: the API server has just started. */
export function isNotReady(message: string): boolean {
  return NOT_READY.test(message);
}

/** Returns the message of a built-in admission plugin without the pod's name; undefined for one of a webhook or policy. */
export function pluginMessage(message: string): string | undefined {
  return FORBIDDEN_POD.test(message) ? withoutPodName(message) : undefined;
}

/** Returns the message without the name of the pod that it is about. */
export function withoutPodName(message: string): string {
  return message.replace(FORBIDDEN_POD, "");
}

/** Reports whether an admission webhook denied the request, or did not answer. */
export function isOfWebhook(message: string): boolean {
  return WEBHOOK_FAILED.test(message) || WEBHOOK_DENIED.test(message);
}

/** Returns the name of the admission webhook that denied the request, or did not answer. Undefined for another message. */
export function webhookOf(message: string): string | undefined {
  return WEBHOOK_NAME.exec(message)?.[1];
}

/** Reports whether an admission webhook was reached and denied the request. */
export function isDeniedByWebhook(message: string): boolean {
  return WEBHOOK_DENIED.test(message);
}

/** Returns the name of the admission policy that denied the request. Undefined for another message. */
export function denyingPolicy(message: string): string | undefined {
  return POLICY_DENIED.exec(message)?.[1];
}

/** Reports whether the API server does not proxy to an address, since it leads to its own machine. */
export function isAddressNotAllowed(message: string): boolean {
  return ADDRESS_NOT_ALLOWED.test(message);
}

/** Returns the message without the name of the object that it is about. */
export function withoutObjectName(message: string): string {
  return message.replace(FORBIDDEN_OBJECT, "");
}

/** Returns a kubelet's message without the prefix that each API server on its way puts before it. */
export function withoutInternalError(message: string): string {
  return message.replace(INTERNAL_ERROR, "");
}

/** Reports whether a webhook with side effects keeps the API server from a dry run. */
export function hasNoDryRun(message: string): boolean {
  return NO_DRY_RUN.test(message);
}

/** How a quota refuses a request: it is full, not counted yet, or cannot be applied to the object. */
export type QuotaRefusal = "exceeded" | "unknown" | "unmet";

/** Returns how a quota refuses the request; undefined when no quota does. `message`: without the object's name. */
export function quotaRefusal(message: string): QuotaRefusal | undefined {
  const [all, what] = QUOTA.exec(message) ?? [];
  if (all === undefined) return undefined;
  if (what === "exceeded") return "exceeded";
  return what === "status unknown for" ? "unknown" : "unmet";
}

/** An object that a pod names and the cluster does not have. */
export interface MissingObject {
  readonly kind: "ServiceAccount" | "PriorityClass" | "RuntimeClass";
  readonly name: string;
}

/** Returns the object for whose absence an admission plugin refuses a pod; undefined when it is refused for something else. */
export function missingObject(message: string): MissingObject | undefined {
  const patterns = [
    ["ServiceAccount", NO_SERVICE_ACCOUNT],
    ["PriorityClass", NO_PRIORITY_CLASS],
    ["RuntimeClass", NO_RUNTIME_CLASS],
  ] as const;
  for (const [kind, pattern] of patterns) {
    const name = pattern.exec(message)?.[1];
    if (name !== undefined) return { kind, name };
  }
  return undefined;
}

/** Reports whether the namespace of the request does not exist. */
export function isNamespaceMissing(message: string): boolean {
  return NO_NAMESPACE.test(message);
}

/** Reports whether the API server does not serve the resource or subresource: the object itself may exist. */
export function isNotServed(message: string): boolean {
  return NO_SUCH_RESOURCE.test(message);
}

/** Reports whether the text, which is no Status, says that the API server serves no such path. */
export function isUnknownPath(text: string): boolean {
  return UNKNOWN_PATH.test(text);
}

/** Reports whether a kubelet's authorizer refused its own API server, alone or quoted by it. */
export function isKubeletRefusal(message: string): boolean {
  return KUBELET_FORBIDS.test(message);
}

/** Reports whether kube-scheduler found no node for reasons that depend on labels of pods. */
export function dependsOnPodLabels(message: string): boolean {
  return BY_POD_LABELS.test(message);
}

/** Reports whether kube-scheduler found a node for the pod, and none for too many others of its PodGroup. */
export function awaitsGang(message: string): boolean {
  return AWAITS_GANG.test(message);
}

/** Returns the resources that kube-scheduler found too little of. */
export function insufficientResources(message: string): ReadonlySet<string> {
  return new Set([...message.matchAll(INSUFFICIENT)].map(([, resource = ""]) => resource));
}

/** Returns the resources of which LimitRanger set a container's request or limit, by the annotation that it wrote. */
export function setByLimitRanger(annotation: string): ReadonlySet<string> {
  return new Set([...annotation.matchAll(SET_BY_LIMIT_RANGER)].flatMap(([, resources = ""]) => resources.split(", ")));
}

// An amount of its own, with its unit or exponent: not a part of a name, nor of anything quoted. Quotas and kube-scheduler count in prose.
const AMOUNT = /(?<![\w./"'-])\d[\d.]*(?:(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)(?!\w))?/g;

/** Returns the message with all amounts made equal, so that those that differ in nothing else compare as one. */
export function withoutAmounts(message: string): string {
  return message.replaceAll(AMOUNT, "0");
}

/** Longest problem of one member in a message that lists several. */
export const LONGEST_PROBLEM = 300;

/** Returns as much of a text as `most` characters hold. */
export function cutAt(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}

/** Returns the path of the field that the API server does not know and has dropped, of a warning about one. */
export function unknownFieldOf(warning: string): string | undefined {
  return UNKNOWN_FIELD.exec(warning)?.[1];
}

/** Returns the manager of a field, of the cause of a conflict between field managers. */
export function fieldManagerIn(cause: string): string | undefined {
  return FIELD_MANAGER.exec(cause)?.[1];
}
