import { expect, test } from "vitest";
import { isOfAllAlike, isOfQuota, passingRefusalOf, refusalOf } from "../../../src/controllers/api-refusal.ts";
import type { KubeError, KubeErrorFields } from "../../../src/kube/errors.ts";
import { kubeError } from "../../support/builders/kube-error.ts";

const full = "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1";

function answered(detail: string, { code = "Forbidden", ...parts }: Partial<KubeErrorFields> = {}): KubeError {
  return kubeError(code, detail, { namespace: "team", objectName: "web-0", ...parts });
}

const plugin = (words: string): KubeError => answered(`pods "web-0" is forbidden: ${words}`);
const ends = { kind: "pods", causes: [{ type: "NamespaceTerminating", field: "metadata.namespace" }] };

test.each<[string, KubeError, boolean]>([
  ["a full quota", plugin(full), true],
  ["a quota without figures", plugin("status unknown for quota: small, resources: pods"), true],
  ["a quota that wants requests", plugin("failed quota: small: must specify cpu for: main"), true],
  ["a missing PriorityClass", plugin("no PriorityClass with name gold was found"), true],
  ["a missing RuntimeClass", plugin('pod rejected: RuntimeClass "gvisor" not found'), true],
  ["a missing account", plugin('error looking up service account team/a: serviceaccount "a" not found'), true],
  ["a namespace that ends", answered("no new content", { details: ends }), true],
  [
    "a missing namespace",
    answered("not found", { code: "NotFound", details: { kind: "namespaces", causes: [] } }),
    true,
  ],
  ["a namespace that may not be made", answered("denied", { resource: "namespaces", objectName: "team" }), true],
  ["rights that are lacking", answered('pods is forbidden: User "legation" cannot create resource "pods"'), true],
  ["too many requests", answered("try again later", { code: "TooManyRequests" }), true],
  ["a policy", plugin("ValidatingAdmissionPolicy 'team' with binding 'team' denied request: no label"), false],
  [
    "a policy that speaks of quotas",
    plugin(`ValidatingAdmissionPolicy 'q' with binding 'q' denied request: ${full}`),
    false,
  ],
  ["a webhook that speaks of quotas", answered(`admission webhook "q" denied the request: ${full}`), false],
  [
    "a webhook that has enough",
    answered('admission webhook "q" denied the request: no', { code: "TooManyRequests" }),
    false,
  ],
  ["a webhook that does not answer", answered('failed calling webhook "q": timeout', { code: "ServerError" }), false],
  ["Pod Security", plugin('violates PodSecurity "restricted:latest": seccompProfile'), false],
  ["an invalid label", answered("metadata.labels: Invalid value", { code: "Unprocessable" }), false],
  ["a pod that is to be deleted", answered("pods conflict", { code: "Conflict" }), false],
])("shares a member's refusal with all pods of the same spec, or not: %s", (_, error, shared) => {
  expect(isOfAllAlike(error)).toBe(shared);
});

test("leaves the pod's name out of a refusal that is shared", () => {
  expect(refusalOf(plugin(full))?.message).toBe(`its API server refused the pod: ${full}`);
});

test.each([
  ["a quota's", plugin(full), true],
  ["a webhook's about quotas", answered(`admission webhook "q" denied the request: ${full}`), false],
])("distinguishes a quota's message from others: %s", (_, { detail }, isQuota) => {
  expect(isOfQuota(detail)).toBe(isQuota);
});

test("counts a failing webhook of a member as a refusal of one pod that may pass", () => {
  const error = answered('failed calling webhook "q": timeout', { code: "ServerError" });
  expect(passingRefusalOf(error)?.message).toContain("failed calling webhook");
});
