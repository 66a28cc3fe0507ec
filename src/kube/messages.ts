/**
 * Messages of Kubernetes whose meaning no field of a Status carries. All patterns for such messages are in this file, each with its
 * source in k8s.io/kubernetes. Messages of Legation itself are never parsed.
 */

type Says = (message: string) => boolean;
type Names = (message: string) => string | undefined;
type Changes = (message: string) => string;

function says(...patterns: readonly RegExp[]): Says {
  return (message) => patterns.some((pattern) => pattern.test(message));
}

function names(pattern: RegExp): Names {
  return (message) => pattern.exec(message)?.[1];
}

function without(pattern: RegExp): Changes {
  return (message) => message.replace(pattern, "");
}

/** A right that an authorizer denies. */
export interface DeniedRight {
  readonly verb: string;
  /** Plural of the resource, with its subresource: `pods/eviction`. A path for what is no resource. */
  readonly resource: string;
}

// apiserver/pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage. A kubelet quotes it with escaped quotes.
const DENIED_RIGHT = /\bUser \\?".*\\?" cannot (\S+) (?:resource|path) \\?"([^"\\]*)/;

/** Returns the right that the authorizer denied; undefined when the message is about something else. */
export function deniedRight(message: string): DeniedRight | undefined {
  const [, verb, resource] = DENIED_RIGHT.exec(message) ?? [];
  return verb === undefined || resource === undefined ? undefined : { verb, resource };
}

/** An admission plugin waits for its informers: the API server has just started (plugin/pkg/admission). */
export const isNotReady: Says = says(/: not yet ready to handle request$/);

// apimachinery/pkg/api/errors/errors.go, NewForbidden: the prefix of every built-in admission plugin. The name of a webhook or of a
// policy stands before its own words, so neither can be mistaken for a plugin.
const FORBIDDEN_POD = /^pods "[^"]*" is forbidden: /;

/** Leaves out the name of the pod that the message is about. */
export const withoutPodName: Changes = without(FORBIDDEN_POD);

/** Leaves out the name of the object that the message is about. */
export const withoutObjectName: Changes = without(/^[a-z.]+ "[^"]*" is forbidden: /);

/** Returns the message of a built-in admission plugin without the pod's name; undefined for one of a webhook or policy. */
export function pluginMessage(message: string): string | undefined {
  return FORBIDDEN_POD.test(message) ? withoutPodName(message) : undefined;
}

// apiserver/pkg/util/webhook/webhook.go, ErrCallingWebhook, whatever status the webhook itself answered with.
const WEBHOOK_FAILED = /failed (?:calling|to call) webhook/;
// apiserver/pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr and NewDryRunUnsupportedErr.
const WEBHOOK_DENIED = /^admission webhook ".*" denied the request/;

/** An admission webhook denied the request, or did not answer. */
export const isOfWebhook: Says = says(WEBHOOK_FAILED, WEBHOOK_DENIED);

/** An admission webhook was reached and denied the request. */
export const isDeniedByWebhook: Says = says(WEBHOOK_DENIED);

/** Names the admission webhook that denied the request, or did not answer. */
export const webhookOf: Names = names(/(?:^admission webhook|failed calling webhook) "([^"]+)"/);

/** A webhook with side effects keeps the API server from a dry run. */
export const hasNoDryRun: Says = says(/does not support dry run/);

/** Names the policy that denied the request (apiserver/pkg/admission/plugin/policy/validating/plugin.go). */
export const denyingPolicy: Names = names(/\bValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request/);

/** The API server proxies to no loopback or link-local address (pkg/proxy/util/utils.go, ErrAddressNotAllowed). */
export const isAddressNotAllowed: Says = says(/\baddress not allowed\b/);

/** Returns why the API server could not pass a request on to a pod (apimachinery/pkg/util/proxy/transport.go, RoundTrip). */
export const proxyProblem: Names = names(/^error trying to reach service: (.*)/s);

/** The way to a server is open, and nothing listens there (Linux, ECONNREFUSED). */
export const isRefused: Says = says(/\bconnection refused\b/);

/** The proxied server took the connection, and does not speak HTTP (net/http, transport.go). */
export const isNoHttp: Says = says(/\b(EOF|connection reset by peer|malformed HTTP)\b/);

/** Leaves out the prefix that each API server puts before a kubelet's message (apimachinery, NewInternalError). */
export const withoutInternalError: Changes = without(/^Internal error occurred: /);

/** How a quota refuses a request: it is full, not counted yet, or cannot be applied to the object. */
export type QuotaRefusal = "exceeded" | "unknown" | "unmet";

// apiserver/pkg/admission/plugin/resourcequota/controller.go, checkQuotas and CheckRequest.
const QUOTA = /^(exceeded|failed|status unknown for) quota: |^insufficient quota to consume: /;

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

const MISSING = [
  // plugin/pkg/admission/serviceaccount/admission.go, Admit.
  ["ServiceAccount", /\bserviceaccount "([^"]*)" not found/],
  // plugin/pkg/admission/priority/admission.go, admitPod.
  ["PriorityClass", /\bno PriorityClass with name (.*) was found/],
  // plugin/pkg/admission/runtimeclass/admission.go, prepareObjects.
  ["RuntimeClass", /\bRuntimeClass "(.*)" not found/],
] as const;

/** Returns the object for whose absence an admission plugin refuses a pod; undefined when it is refused for something else. */
export function missingObject(message: string): MissingObject | undefined {
  for (const [kind, pattern] of MISSING) {
    const name = pattern.exec(message)?.[1];
    if (name !== undefined) return { kind, name };
  }
  return undefined;
}

/** The namespace of the request does not exist (apimachinery/pkg/api/errors/errors.go, NewNotFound). */
export const isNamespaceMissing: Says = says(/^namespaces ".*" not found$/);

// apimachinery/pkg/api/errors/errors.go, NewGenericServerResponse.
/** The API server does not serve the resource or subresource: the object itself may exist. */
export const isNotServed: Says = says(/could not find the requested resource/);

/** A text that is no Status says that the API server serves no such path (net/http/server.go of Go, NotFound). */
export const isUnknownPath: Says = says(/^404 page not found\s*$/);

/** A kubelet's authorizer refused its own API server, alone or quoted by it (pkg/kubelet/server/server.go, InstallAuthFilter). */
export const isKubeletRefusal: Says = says(/Forbidden \(user=/);

// pkg/scheduler/framework/plugins: reasons of interpodaffinity and podtopologyspread.
/** kube-scheduler found no node for reasons that depend on labels of pods. */
export const dependsOnPodLabels: Says = says(/affinity rules|pod topology spread constraints/);

// pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest.
const INSUFFICIENT = /\bInsufficient ([\w./-]*\w)/g;

// pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, Permit.
/** kube-scheduler found a node for the pod, and none for too many others of its PodGroup. */
export const awaitsGang: Says = says(/\bwaiting for minCount pods from a gang to be scheduled\b/);

/** Returns the resources that kube-scheduler found too little of. */
export function insufficientResources(message: string): ReadonlySet<string> {
  return new Set([...message.matchAll(INSUFFICIENT)].map(([, resource = ""]) => resource));
}

// plugin/pkg/admission/limitranger/admission.go, mergePodResourceRequirements: the annotation that it writes onto pods.
const SET_BY_LIMIT_RANGER = /(?:^LimitRanger plugin set: |; )([^;]+?) (?:request|limit) for (?:init )?container /g;

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

// sigs.k8s.io/json/internal/golang/encoding/json/kubernetes_patch.go, saveStrictError.
/** Names the field that the API server does not know and has dropped, in a warning about one. */
export const unknownFieldOf: Names = names(/^unknown field "([^"]+)"$/);

// apimachinery/pkg/util/managedfields/internal/conflict.go, printManager.
/** Names the manager of a field, in the cause of a conflict between field managers. */
export const fieldManagerIn: Names = names(/^conflict with "((?:[^"\\]|\\.)*)"/);
