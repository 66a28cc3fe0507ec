import { z } from "zod";
import { HOST_LABEL, SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { namespaces, type Resource, serviceAccounts } from "../../kube/resources.ts";
import { Failure } from "../shared/failure.ts";
import { loadManifests, MANAGED_BY, MANAGED_BY_LABEL, type Manifest } from "../shared/manifests.ts";

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

// Thirty days, the usual maximum of API servers. The controller renews the token long before.
const TOKEN_SECONDS = 720 * 3600;

/** The identity of a host in a member. */
export interface HostAccount {
  readonly hostId: string;
  /** Name of the host for people who look at the member. */
  readonly hostName: string;
  /** Name of the Cluster on the host that stands for this member. */
  readonly cluster: string;
}

/** Label on a host's access in a member with the Cluster's name. */
export const MEMBER_CLUSTER_LABEL: string = VIRTUAL_NODE_LABEL;
const HOST_NAME_ANNOTATION = "legation.dev/host-name";

/** Returns the objects of a host's access. The role has the manifest's rules. */
export function accessObjects(
  role: Manifest,
  account: HostAccount,
): { role: Manifest; binding: Manifest; user: Manifest } {
  const name = hostAccountName(account.hostId);
  const metadata = {
    name,
    labels: {
      [MANAGED_BY_LABEL]: MANAGED_BY,
      [HOST_LABEL]: account.hostId,
      [MEMBER_CLUSTER_LABEL]: account.cluster,
    },
    annotations: { [HOST_NAME_ANNOTATION]: account.hostName },
  };
  return {
    role: {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata,
      rules: [...rulesOf(role), ...ownRules(name)],
    },
    binding: {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name, namespace: SYSTEM_NAMESPACE }],
    },
    user: { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...metadata, namespace: SYSTEM_NAMESPACE } },
  };
}

const rules = z.array(z.record(z.string(), z.unknown()));

function rulesOf(role: Manifest): z.output<typeof rules> {
  return rules.parse(role.rules);
}

/**
 * Returns a host's rights on its own access: to renew its token, and to delete the ClusterRole. That owns the binding and the
 * account, so a host gives up its access without an administrator of the member.
 */
function ownRules(name: string): z.output<typeof rules> {
  return [
    {
      apiGroups: ["rbac.authorization.k8s.io"],
      resources: ["clusterroles"],
      resourceNames: [name],
      verbs: ["delete"],
    },
    { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: [name], verbs: ["create"] },
  ];
}

/** Returns the manifest with the ClusterRole as its owner. */
export function ownedByRole(manifest: Manifest, role: Stored<KubeObject>): Manifest {
  const owner = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    name: role.metadata.name,
    uid: role.metadata.uid,
  };
  return { ...manifest, metadata: { ...manifest.metadata, ownerReferences: [owner] } };
}

/** Legation's namespace in a member, shared by all hosts. */
export const systemNamespace: Manifest = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: SYSTEM_NAMESPACE, labels: { [MANAGED_BY_LABEL]: MANAGED_BY } },
};

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

const tokenAnswer = z.looseObject({ status: z.looseObject({ token: z.string(), expirationTimestamp: z.string() }) });

/** Requests a token of the host's service account. `expires` is in RFC 3339; the API server may shorten the lifetime. */
export async function requestToken(
  client: ClusterClient,
  hostId: string,
  signal: AbortSignal,
): Promise<{ readonly token: string; readonly expires: string }> {
  const answer = await client.createSubresource(
    serviceAccounts,
    { namespace: SYSTEM_NAMESPACE, name: hostAccountName(hostId) },
    "token",
    {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: TOKEN_SECONDS },
    },
    { signal },
  );
  const { token, expirationTimestamp } = tokenAnswer.parse(answer).status;
  return { token, expires: expirationTimestamp };
}

/** Reads Legation's namespace in the member. */
export async function findSystemNamespace(
  client: ClusterClient,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | undefined> {
  return client.find(namespaces, { name: SYSTEM_NAMESPACE }, { signal });
}

/** Loads the ClusterRole of the member-side manifests: the rights that a host needs in a member. */
export async function loadMemberRole(folder: string): Promise<Manifest> {
  const role = (await loadManifests(folder)).find(({ kind }) => kind === "ClusterRole");
  if (role !== undefined) return role;
  throw new Failure("failure", {
    object: folder,
    problem: "holds no ClusterRole",
    remedy: "install the package again",
  });
}
