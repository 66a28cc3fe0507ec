import { SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { type Resource, serviceAccounts } from "../../kube/resources.ts";

// Tells the hosts of one member apart. The label legation.dev/host holds the whole uid.
const SHORT_ID_LENGTH = 8;

/** Returns the name of a host's service account, ClusterRole and ClusterRoleBinding in a member. Each host has its own. */
export function hostAccountName(hostId: string): string {
  return `legation-host-${hostId.slice(0, SHORT_ID_LENGTH)}`;
}

/** Returns the name of the host's Secret with a member's kubeconfig. */
export function credentialsSecretName(cluster: string): string {
  return `member-${cluster}`;
}

const rbac = { group: "rbac.authorization.k8s.io", version: "v1" } as const;

/** ClusterRoles, read by name only. */
export const clusterRoles: Resource<KubeObject> = {
  ...rbac,
  plural: "clusterroles",
  kind: "ClusterRole",
  namespaced: false,
};

/** ClusterRoleBindings, read by name only. */
export const clusterRoleBindings: Resource<KubeObject> = {
  ...rbac,
  plural: "clusterrolebindings",
  kind: "ClusterRoleBinding",
  namespaced: false,
};

/** Label on a host's access in a member with the Cluster's name. */
export const MEMBER_CLUSTER_LABEL: string = VIRTUAL_NODE_LABEL;

/** Returns the service account with the host's name, whoever created it. */
export async function findAccount(
  client: ClusterClient,
  hostId: string,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | undefined> {
  // The stored credentials may list service accounts, and not get them.
  const fieldSelector = `metadata.name=${hostAccountName(hostId)}`;
  const { items } = await client.list(serviceAccounts, { namespace: SYSTEM_NAMESPACE, fieldSelector, signal });
  return items[0];
}
