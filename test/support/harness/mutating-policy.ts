const API_VERSION = "admissionregistration.k8s.io/v1";

/** The parts of a MutatingAdmissionPolicy's spec in which policies of the tests differ. */
export interface MutatingPolicySpec {
  readonly matchConstraints: object;
  readonly matchConditions?: readonly object[];
  readonly mutation: object;
}

/** Returns a MutatingAdmissionPolicy, which refuses what it fails to change, and its binding. */
export function mutatingPolicy(
  name: string,
  { matchConstraints, matchConditions, mutation }: MutatingPolicySpec,
): readonly [policy: object, binding: object] {
  const metadata = { name };
  return [
    {
      apiVersion: API_VERSION,
      kind: "MutatingAdmissionPolicy",
      metadata,
      spec: {
        matchConstraints,
        ...(matchConditions === undefined ? {} : { matchConditions }),
        failurePolicy: "Fail",
        reinvocationPolicy: "Never",
        mutations: [mutation],
      },
    },
    {
      apiVersion: API_VERSION,
      kind: "MutatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: name },
    },
  ];
}

/** Returns constraints to new pods of the namespaces. */
export function newPodsIn(namespaces: readonly string[]): object {
  return {
    namespaceSelector: {
      matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values: namespaces }],
    },
    resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
  };
}
