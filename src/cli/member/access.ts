import { ACCESS_NAMESPACE, accessAccountName, accessSecretName, shortHostId } from "../../api/access.ts";
import { defined } from "../../api/defined.ts";
import { HOST_LABEL, SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ignoring, isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { clusterScoped, namespaced, type Resource, secrets, serviceAccounts } from "../../kube/resources.ts";
import type { Manifest } from "../shared/manifests.ts";
import { objectText } from "../shared/output.ts";
import { readable } from "../shared/reading.ts";
import { refOf, remove } from "../shared/removal.ts";
import type { HostContext } from "../shared/session.ts";

const RBAC = "rbac.authorization.k8s.io";
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
    roleRef: { apiGroup: RBAC, kind, name: metadata.name },
    subjects: [{ kind: "ServiceAccount", name: account, namespace: SYSTEM_NAMESPACE }],
  };
}

/** Returns the name of a host's service account, ClusterRole and ClusterRoleBinding in a member. Each host has its own. */
export function hostAccountName(hostId: string): string {
  return `legation-host-${shortHostId(hostId)}`;
}

/** Returns the name of a host's agent in a member, and of its Secret. */
export function agentName(hostId: string): string {
  return `legation-agent-${shortHostId(hostId)}`;
}

/** Returns the name of the ClusterRole that gathers a host's rights on types in a member, and of its binding. */
export function hostTypesName(hostId: string): string {
  return `${hostAccountName(hostId)}-types`;
}

export function credentialsSecretName(cluster: string): string {
  // `join` writes and checks both Secrets of a member by one name.
  return accessSecretName(cluster);
}

export const clusterRoles: Resource<KubeObject> = clusterScoped(RBAC, "ClusterRole");
export const clusterRoleBindings: Resource<KubeObject> = clusterScoped(RBAC, "ClusterRoleBinding");
export const roles: Resource<KubeObject> = namespaced(RBAC, "Role");
export const roleBindings: Resource<KubeObject> = namespaced(RBAC, "RoleBinding");

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

/** An object of a host's access in a member, as it was read. */
interface Owned {
  readonly resource: Resource<KubeObject>;
  readonly object: Stored<KubeObject>;
}

/** A host's access in a member. */
interface HostAccess {
  /** The ClusterRole, which owns all else. Undefined: there is none. Without `uid`: the credentials may not read it. */
  readonly role: { readonly uid?: string } | undefined;
  /** The other objects, as far as the credentials may list them. */
  readonly owned: readonly Owned[];
}

/** Reads a host's access in a member, so that access granted later is not removed with it. Rejects with KubeError. */
export async function findAccess(client: ClusterClient, hostId: string, signal: AbortSignal): Promise<HostAccess> {
  const name = hostAccountName(hostId);
  const found = await findOwned(client, hostId, signal);
  const isThe = (kind: Resource<KubeObject>, { resource, object }: Owned): boolean =>
    resource === kind && object.metadata.name === name;
  const owned = found.filter((each) => !isThe(clusterRoles, each));
  const read = await readable(client.find(clusterRoles, { name }, { signal }).then((object) => ({ object })));
  if (read !== undefined) return { role: read.object && { uid: read.object.metadata.uid }, owned };
  const account = owned.find((each) => isThe(serviceAccounts, each))?.object.metadata;
  const owner = account?.ownerReferences?.find(({ kind }) => kind === clusterRoles.kind);
  return { role: defined({ uid: owner?.uid }), owned };
}

async function findOwned(client: ClusterClient, hostId: string, signal: AbortSignal): Promise<readonly Owned[]> {
  const labelSelector = `${HOST_LABEL}=${hostId}`;
  const found = [clusterRoleBindings, clusterRoles, serviceAccounts].map(async (resource: Resource<KubeObject>) => {
    const objects = (await readable(listAll(client, resource, { labelSelector, signal }))) ?? [];
    return objects.map((object) => ({ resource, object }));
  });
  return (await Promise.all(found)).flat().filter(({ object: { metadata } }) => {
    const { name, namespace = SYSTEM_NAMESPACE } = metadata;
    const isOfHost = name.startsWith(hostAccountName(hostId)) || name === accessAccountName(hostId);
    return namespace === SYSTEM_NAMESPACE && isOfHost;
  });
}

/** Removes a host's access by uid. Reports what remains because the credentials do not permit its removal. */
export async function giveUpAccess(
  client: ClusterClient,
  hostId: string,
  { role, owned }: HostAccess,
  { signal, report, remains }: RemovalContext & { readonly remains: (what: string) => void },
): Promise<void> {
  const name = hostAccountName(hostId);
  try {
    const isRemoved = role !== undefined && (await remove(client, clusterRoles, { name }, { signal, ...role }));
    if (isRemoved) report(`${client.cluster}: ClusterRole ${name} removed`);
    // The role is gone with what it owns, or belongs to a new join.
    else if (role?.uid !== undefined) return;
  } catch (error) {
    if (!isKubeError(error)) throw error;
    remains(`ClusterRole ${name}, its ClusterRoleBinding and ServiceAccount: ${error.detail}`);
    return;
  }
  await removeOwned(client, owned, { signal, report });
}

type RemovalContext = Pick<HostContext, "signal" | "report">;

/** Removes objects at once, where the rights permit. Kubernetes removes them with the ClusterRole that owns them. */
async function removeOwned(
  client: ClusterClient,
  owned: readonly Owned[],
  { signal, report }: RemovalContext,
): Promise<void> {
  for (const { resource, object } of owned) {
    const { metadata } = object;
    const removal = remove(client, resource, refOf(metadata), { uid: metadata.uid, signal });
    const isRemoved = await ignoring(removal, "Forbidden", "Unauthorized");
    const how = isRemoved === undefined ? " (with its ClusterRole)" : "";
    if (isRemoved !== false) report(`${client.cluster}: ${objectText(resource.kind, metadata)}${how} removed`);
  }
}

/** Removes the account in a member by which `legation access` acts for users. Rejects with KubeError if any of it stays. */
export async function removeAccessAccount(
  client: ClusterClient,
  hostId: string,
  { signal, report }: RemovalContext,
): Promise<void> {
  for (const resource of [clusterRoleBindings, clusterRoles, roleBindings, roles, serviceAccounts]) {
    const ref = { ...(resource.namespaced && { namespace: SYSTEM_NAMESPACE }), name: accessAccountName(hostId) };
    if (await remove(client, resource, ref, { signal })) {
      report(`${client.cluster}: ${objectText(resource.kind, ref)} removed`);
    }
  }
}

/** Removes what the host has stored for `legation access`, so that users reach the member no more. */
export async function removeAccessCredentials(
  cluster: string,
  { host, signal, report }: RemovalContext & Pick<HostContext, "host">,
): Promise<void> {
  const ref = { namespace: ACCESS_NAMESPACE, name: accessSecretName(cluster) };
  if (await remove(host, secrets, ref, { signal })) report(`${host.cluster}: ${objectText("Secret", ref)} removed`);
}
