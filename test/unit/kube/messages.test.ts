import { describe, expect, test } from "vitest";
import {
  type DeniedRight,
  deniedRight,
  dependsOnPodLabels,
  fieldManagerIn,
  hasNoDryRun,
  insufficientResources,
  isKubeletRefusal,
  isNamespaceMissing,
  isNoHttp,
  isNotReady,
  isNotServed,
  isOfWebhook,
  isRefused,
  type MissingObject,
  missingObject,
  pluginMessage,
  type QuotaRefusal,
  quotaRefusal,
  setByLimitRanger,
  webhookOf,
  withoutAmounts,
  withoutPodName,
} from "../../../src/kube/messages.ts";

const denied =
  'pods "web-0" is forbidden: User "legation" cannot patch resource "pods/status" in API group "" in the namespace "team"';

test.each<[string, DeniedRight | undefined]>([
  [denied, { verb: "patch", resource: "pods/status" }],
  [
    '{"message":"pods is forbidden: User \\"legation\\" cannot create resource \\"pods/exec\\""}',
    { verb: "create", resource: "pods/exec" },
  ],
  ['forbidden: User "system:anonymous" cannot get path "/readyz"', { verb: "get", resource: "/readyz" }],
  ['pods "web-0" is forbidden: exceeded quota: small', undefined],
])("reads the right that %s denies", (message, right) => {
  expect(deniedRight(message)).toEqual(right);
});

test.each<[string, QuotaRefusal | undefined]>([
  ["exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1", "exceeded"],
  ["status unknown for quota: small, resources: pods", "unknown"],
  ["failed quota: small: must specify cpu for: main", "unmet"],
  ["insufficient quota to consume: requests.nvidia.com/gpu", "unmet"],
  ['admission webhook "q" denied the request: exceeded quota: small', undefined],
])("%s is a quota's refusal: %s", (message, refusal) => {
  expect(quotaRefusal(message)).toBe(refusal);
});

test.each<[string, MissingObject | undefined]>([
  ['error looking up service account team/a: serviceaccount "a" not found', { kind: "ServiceAccount", name: "a" }],
  ["no PriorityClass with name gold was found", { kind: "PriorityClass", name: "gold" }],
  ['pod rejected: RuntimeClass "gvisor" not found', { kind: "RuntimeClass", name: "gvisor" }],
  ['secrets "token" not found', undefined],
])("%s names the missing object", (message, missing) => {
  expect(missingObject(message)).toEqual(missing);
});

test.each<[(message: string) => boolean, string, string]>([
  [isNotReady, 'pods "web-0" is forbidden: not yet ready to handle request', denied],
  [isOfWebhook, 'Internal error occurred: failed calling webhook "q": failed to call webhook: timeout', denied],
  [isOfWebhook, 'admission webhook "q" denied the request: no', 'pods "web-0" is forbidden: denied the request'],
  [isRefused, "dial tcp 10.1.0.7:80: connect: connection refused", "dial tcp 10.1.0.7:80: i/o timeout"],
  [isNoHttp, "net/http: HTTP/1.x transport connection broken: malformed HTTP response", "dial tcp: i/o timeout"],
  [hasNoDryRun, 'admission webhook "q" does not support dry run', denied],
  [isNamespaceMissing, 'namespaces "team" not found', 'pods "web-0" not found'],
  [isNotServed, "the server could not find the requested resource", 'pods "web-0" not found'],
  [isKubeletRefusal, "Forbidden (user=kubernetes, verb=get, resource=nodes, subresource=proxy)", denied],
  [
    dependsOnPodLabels,
    "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints.",
    "0/3 nodes are available: 3 Insufficient cpu.",
  ],
])("%o holds for %s and not for %s", (holds, message, other) => {
  expect([holds(message), holds(other)]).toEqual([true, false]);
});

test.each<[string, string | undefined]>([
  ['Internal error occurred: failed calling webhook "a.b": failed to call webhook: timeout', "a.b"],
  ['admission webhook "a.b" denied the request: failed calling webhook "c.d"', "a.b"],
  [denied, undefined],
])("%s is of the webhook %s", (message, name) => {
  expect(webhookOf(message)).toBe(name);
});

describe("the message of an admission plugin", () => {
  test("is told without the name of the pod", () => {
    expect(pluginMessage('pods "web-0" is forbidden: exceeded quota: small')).toBe("exceeded quota: small");
    expect(withoutPodName('pods "web-0" is forbidden: exceeded quota: small')).toBe("exceeded quota: small");
  });

  test("is told apart from that of a webhook", () => {
    const ofWebhook = 'admission webhook "q" denied the request: pods "web-0" is forbidden: no';
    expect(pluginMessage(ofWebhook)).toBeUndefined();
    expect(withoutPodName(ofWebhook)).toBe(ofWebhook);
  });
});

test.each([
  ["used: pods=5, limited: pods=5", "used: pods=6, limited: pods=6", true],
  ["0/5 nodes are available: 3 Insufficient cpu.", "0/5 nodes are available: 4 Insufficient cpu.", true],
  ["memory: 2Gi requested, 1.5e9 left", "memory: 2Gi requested, 123456Ki left", true],
  ["node-1m is full", "node-2m is full", false],
  ['serviceaccount "1" not found', 'serviceaccount "2" not found', false],
  ["5 minutes", "5 months", false],
])("%s and %s differ in amounts only: %s", (one, other, same) => {
  expect(withoutAmounts(one) === withoutAmounts(other)).toBe(same);
});

test.each([
  ["LimitRanger plugin set: cpu, memory request for container main; cpu limit for container main", ["cpu", "memory"]],
  [
    "LimitRanger plugin set: nvidia.com/gpu limit for init container setup; cpu request for container a",
    ["nvidia.com/gpu", "cpu"],
  ],
  ["cpu request for container main", []],
])("reads which resources LimitRanger set: %s", (annotation, resources) => {
  expect([...setByLimitRanger(annotation)]).toEqual(resources);
});

test.each([
  [
    "0/5 nodes are available: 2 Insufficient cpu, 3 Insufficient nvidia.com/gpu. no new claims to deallocate",
    ["cpu", "nvidia.com/gpu"],
  ],
  ["0/5 nodes are available: 5 Insufficient memory.", ["memory"]],
  ["0/5 nodes are available: 5 node(s) had untolerated taint(s).", []],
])("reads of which resources kube-scheduler found too little: %s", (message, resources) => {
  expect([...insufficientResources(message)]).toEqual(resources);
});

test.each([
  ['conflict with "kubectl-patch" using v1 at 2026-02-03T04:05:06Z', "kubectl-patch"],
  ['conflict with "kube-controller-manager" with subresource "scale" using apps/v1', "kube-controller-manager"],
  ['conflict with "a \\"b\\"" using v1', 'a \\"b\\"'],
  ["another conflict", undefined],
])("reads the field manager of the cause %s", (cause, manager) => {
  expect(fieldManagerIn(cause)).toBe(manager);
});
