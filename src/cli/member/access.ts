import { z } from "zod";
import { HOST_LABEL, SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { namespaces, type Resource, serviceAccounts } from "../../kube/resources.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "../manifests/labels.ts";
import type { Manifest } from "../manifests/load.ts";
import { hostAccountName } from "./names.ts";

const rbac = { group: "rbac.authorization.k8s.io", version: "v1" } as const;

/** ClusterRoles, as `src/cli` needs them: by name only. */
export const clusterRoles: Resource<KubeObject> = {
  ...rbac,
  plural: "clusterroles",
  kind: "ClusterRole",
  namespaced: false,
};

/** ClusterRoleBindings, likewise. */
export const clusterRoleBindings: Resource<KubeObject> = {
  ...rbac,
  plural: "clusterrolebindings",
  kind: "ClusterRoleBinding",
  namespaced: false,
};

// Thirty days: what most API servers allow at most. The controller renews it long before.
const TOKEN_SECONDS = 720 * 3600;

/** The identity of a host in a member. */
export interface HostAccount {
  readonly hostId: string;
  /** Human name of the host, for people who look at the member. */
  readonly hostName: string;
  /** Name of the Cluster on the host that stands for this member. */
  readonly cluster: string;
}

/** Label on a host's access in a member: the Cluster that it is the access of. */
export const MEMBER_CLUSTER_LABEL: string = VIRTUAL_NODE_LABEL;
const HOST_NAME_ANNOTATION = "legation.dev/host-name";

/** The objects that give a host its access, in the order in which they are made; the role's rules are the manifest's. */
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
 * What a host may do with its own access. It can give it up without an administrator of the member: the binding and the
 * service account are owned by the ClusterRole, so deleting that one object takes all three. It can renew its token.
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

/** The manifest with the ClusterRole as its owner. */
export function ownedByRole(manifest: Manifest, role: Stored<KubeObject>): Manifest {
  const owner = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    name: role.metadata.name,
    uid: role.metadata.uid,
  };
  return { ...manifest, metadata: { ...manifest.metadata, ownerReferences: [owner] } };
}

/** Legation's namespace in a member; shared by all hosts that use it. */
export const systemNamespace: Manifest = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: SYSTEM_NAMESPACE, labels: { [MANAGED_BY_LABEL]: MANAGED_BY } },
};

/** The host's service account in the member, or one of that name. */
export async function findAccount(
  client: ClusterClient,
  hostId: string,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | undefined> {
  // The host's own credentials may list, and not get.
  const fieldSelector = `metadata.name=${hostAccountName(hostId)}`;
  const { items } = await client.list(serviceAccounts, { namespace: SYSTEM_NAMESPACE, fieldSelector, signal });
  return items[0];
}

const tokenAnswer = z.looseObject({ status: z.looseObject({ token: z.string(), expirationTimestamp: z.string() }) });

/** A token of the host's service account, and when it ends (RFC 3339; the API server may give less than was asked). */
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

/** Legation's namespace in the member, when it is there. */
export async function findSystemNamespace(
  client: ClusterClient,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | undefined> {
  return client.find(namespaces, { name: SYSTEM_NAMESPACE }, { signal });
}
