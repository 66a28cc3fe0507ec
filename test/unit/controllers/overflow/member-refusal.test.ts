import { describe, expect, test } from "vitest";
import { dryRunRefusal } from "../../../../src/controllers/overflow/member-refusal.ts";
import type { KubeError, KubeErrorCode } from "../../../../src/kube/errors.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";

function failure(code: KubeErrorCode, detail: string): KubeError {
  return kubeError(code, detail);
}

describe("a member's answer to a trial", () => {
  test.each<[string, KubeErrorCode, string, string]>([
    [
      "a quota",
      "Forbidden",
      'pods "web" is forbidden: exceeded quota: small',
      "its API server refused the pod: exceeded quota: small",
    ],
    ["an invalid pod", "Unprocessable", "spec: wrong", "its API server refused the pod: spec: wrong"],
    ["a name that is taken", "AlreadyExists", "exists", "a pod of that name is there"],
  ])("is a refusal for %s", (_, code, detail, message) => {
    expect(dryRunRefusal("west", failure(code, detail), true)).toMatchObject({ refusal: { cluster: "west", message } });
  });

  test.each<[string, KubeErrorCode, string]>([
    ["a namespace that will be made", "NotFound", 'namespaces "team" not found'],
    [
      "an account that will be created",
      "Forbidden",
      'error looking up service account team/x: serviceaccount "x" not found',
    ],
    ["a webhook that cannot try", "BadRequest", "admission webhook w does not support dry run"],
  ])("is no refusal for %s", (_, code, detail) => {
    expect(dryRunRefusal("west", failure(code, detail), true)).toBeUndefined();
  });

  test("is a refusal for a namespace that nothing creates", () => {
    const { refusal } = dryRunRefusal("west", failure("NotFound", 'namespaces "team" not found'), false) ?? {};
    expect(refusal?.message).toContain("spec.createNamespaces of Cluster west is false");
  });

  test("is thrown again if it does not concern the pod", () => {
    const error = failure("ServerError", "etcd is away");
    expect(() => dryRunRefusal("west", error, true)).toThrow(error);
  });
});
