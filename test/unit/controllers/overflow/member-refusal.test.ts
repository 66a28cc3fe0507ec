import { describe, expect, test } from "vitest";
import { dependencyRefusal, dryRunRefusal } from "../../../../src/controllers/overflow/member-refusal.ts";
import type { KubeError, KubeErrorCode } from "../../../../src/kube/errors.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { quietClient } from "../quiet-client.ts";

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

test("a member that does not serve the type of an object that the pod needs refuses the pod, and says which", async () => {
  const list = async (): Promise<never> => {
    throw failure("NotFound", "the server could not find the requested resource");
  };
  const member = {
    name: "west",
    client: quietClient([], { list }),
    answerOf: <T>(answer: Promise<T>): Promise<T> => answer,
    noteFailure: () => {},
  };
  const pod = proxyPod({ spec: { volumes: [{ name: "settings", configMap: { name: "settings" } }] } });
  const { signal } = new AbortController();
  const question = { host: quietClient([]), hostId: HOST.id, member, signal };
  expect(await dependencyRefusal(pod, question)).toEqual({
    cluster: "west",
    reason: "RefusedByMember",
    message: "does not serve configmaps, so no ConfigMap settings, which the pod needs",
  });
});
