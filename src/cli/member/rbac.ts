import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Manifest } from "../shared/manifests.ts";

const API_GROUP = "rbac.authorization.k8s.io";
export const RBAC_VERSION = "rbac.authorization.k8s.io/v1";
type Kind = "ClusterRole" | "Role";

export function role(kind: Kind, metadata: Manifest["metadata"], rules: readonly object[]): Manifest {
  return { apiVersion: RBAC_VERSION, kind, metadata, rules };
}

/** Returns the binding that gives the role of its name to a service account of Legation's namespace. */
export function roleBinding(kind: Kind, metadata: Manifest["metadata"], account: string = metadata.name): Manifest {
  return {
    apiVersion: RBAC_VERSION,
    kind: `${kind}Binding`,
    metadata,
    roleRef: { apiGroup: API_GROUP, kind, name: metadata.name },
    subjects: [{ kind: "ServiceAccount", name: account, namespace: SYSTEM_NAMESPACE }],
  };
}
