import { stringify } from "yaml";
import { INSTALLED_LABELS, SYSTEM_NAMESPACE } from "../../src/api/keys.ts";

const NAME = "legation-test";
const SUBJECTS = [{ kind: "ServiceAccount", name: NAME, namespace: SYSTEM_NAMESPACE }];

/** Reads of `legation doctor` beyond the role of viewers. It has no rights on Secrets, and skips what they would show. */
const RULES = [
  { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list"] },
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"] },
  { apiGroups: [""], resources: ["configmaps"], resourceNames: ["legation"], verbs: ["get"] },
  { apiGroups: [""], resources: ["events", "services"], verbs: ["get", "list"] },
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get", "list"] },
  { apiGroups: ["apiregistration.k8s.io"], resources: ["apiservices"], verbs: ["get", "list"] },
  {
    apiGroups: ["admissionregistration.k8s.io"],
    resources: [
      "mutatingwebhookconfigurations",
      "validatingwebhookconfigurations",
      "validatingadmissionpolicies",
      "validatingadmissionpolicybindings",
    ],
    verbs: ["get", "list"],
  },
  // The webhook is reached by a server-side dry run. RBAC does not tell one from a creation.
  { apiGroups: [""], resources: ["namespaces"], verbs: ["create"] },
];

/** Returns the objects of `helm test`: a pod that runs `legation doctor`, and its rights, which end with the test. */
export function testObjects(): string {
  const rbac = "rbac.authorization.k8s.io/v1";
  const metadata = { name: NAME, labels: INSTALLED_LABELS, annotations: hook(-1, ",hook-succeeded") };
  const namespaced = { name: NAME, namespace: SYSTEM_NAMESPACE, labels: INSTALLED_LABELS };
  const binding = (name: string, role: string): object => ({
    apiVersion: rbac,
    kind: "ClusterRoleBinding",
    metadata: { ...metadata, name },
    subjects: SUBJECTS,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
  });
  const objects = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...namespaced, annotations: metadata.annotations } },
    { apiVersion: rbac, kind: "ClusterRole", metadata, rules: RULES },
    binding(NAME, NAME),
    binding(`${NAME}-viewer`, "legation-viewer"),
    {
      apiVersion: "v1",
      kind: "Pod",
      // The pod stays until the next test: `helm test --logs` reads its log.
      metadata: { ...namespaced, annotations: hook(0, "") },
      spec: {
        serviceAccountName: NAME,
        restartPolicy: "Never",
        containers: [
          {
            name: "doctor",
            image: "",
            // Longer than the default: nobody watches, and Helm waits for five minutes.
            args: ["doctor", "--timeout=60s"],
            resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "256Mi" } },
          },
        ],
      },
    },
  ];
  return objects.map((object) => stringify(object, { aliasDuplicateObjects: false })).join("---\n");
}

function hook(weight: number, more: string): Readonly<Record<string, string>> {
  return {
    "helm.sh/hook": "test",
    "helm.sh/hook-weight": String(weight),
    "helm.sh/hook-delete-policy": `before-hook-creation${more}`,
  };
}
