import { onTestFinished } from "vitest";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { apiRequest } from "../clusters/api-request.ts";
import type { Cluster } from "../clusters/types.ts";
import { eventually } from "./wait.ts";

/** The writes that a cluster must refuse in a namespace. */
export interface RefusedWrites {
  readonly namespace: string;
  /** e.g. `pods` or `pods/resize`. */
  readonly resource: string;
  readonly operation: "CREATE" | "UPDATE" | "DELETE";
  /** CEL; false for what is refused. Default: all of it. */
  readonly expression?: string;
  /** CEL; what is said of an object. Default: the same of all. */
  readonly messageExpression?: string;
  /** Default: the API server's own, Invalid. */
  readonly reason?: "Forbidden" | "Invalid";
}

const admission = { group: "admissionregistration.k8s.io", version: "v1", namespaced: false } as const;
const policies: Resource<KubeObject & { spec: object }> = {
  ...admission,
  plural: "validatingadmissionpolicies",
  kind: "ValidatingAdmissionPolicy",
};
const policyBindings: Resource<KubeObject & { spec: object }> = {
  ...admission,
  plural: "validatingadmissionpolicybindings",
  kind: "ValidatingAdmissionPolicyBinding",
};

/**
 * Makes a cluster refuse some writes until the test has ended, or until the result is called; they are `not in this cluster`. In force a
 * moment later.
 */
export async function refuseWrites(
  client: ClusterClient,
  refused: RefusedWrites,
  onFinished: typeof onTestFinished = onTestFinished,
): Promise<() => Promise<void>> {
  const { namespace, resource, operation, expression = "false", messageExpression, reason } = refused;
  const name = `refuse-${namespace}`;
  const apiVersion = "admissionregistration.k8s.io/v1";
  let isAllowed = false;
  const allow = async (): Promise<void> => {
    if (isAllowed) return;
    isAllowed = true;
    await client.delete(policyBindings, { name });
    await client.delete(policies, { name });
  };
  onFinished(allow);
  const rules = [{ apiGroups: [""], apiVersions: ["v1"], resources: [resource], operations: [operation] }];
  const validation = {
    expression,
    message: "not in this cluster",
    ...(messageExpression === undefined ? {} : { messageExpression }),
    ...(reason === undefined ? {} : { reason }),
  };
  await client.create(policies, {
    apiVersion,
    kind: policies.kind,
    metadata: { name },
    spec: { failurePolicy: "Fail", matchConstraints: { resourceRules: rules }, validations: [validation] },
  });
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  await client.create(policyBindings, {
    apiVersion,
    kind: policyBindings.kind,
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"], matchResources: { namespaceSelector } },
  });
  return allow;
}

/** Waits until a write, made as a dry run, is refused. */
export async function isRefused(dryRun: () => Promise<unknown>): Promise<void> {
  const refused = (): Promise<boolean> =>
    dryRun().then(
      () => false,
      () => true,
    );
  await eventually(refused, { what: "the policy" });
}

/** Gives a namespace of a cluster a quota that lets no pod in. */
export async function forbidPods(cluster: Cluster, namespace: string): Promise<void> {
  const collection = `/api/v1/namespaces/${namespace}/resourcequotas`;
  const body = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "none" }, spec: { hard: { pods: "0" } } };
  await apiRequest(cluster, "POST", collection, { body });
  // A quota refuses nothing before its use was counted.
  await eventually(async () => (await apiRequest(cluster, "GET", `${collection}/none`)).text.includes('"used":{'));
}
