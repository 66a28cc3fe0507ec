import { accessAccountName, shortHostId } from "../../api/access.ts";
import { HOST_LABEL, SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject, ObjectRef, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { clusterScoped, namespaced, type Resource, serviceAccounts } from "../../kube/resources.ts";
import type { Manifest } from "../shared/manifests.ts";
import { objectText } from "../shared/output.ts";
import { readable } from "../shared/reading.ts";
import { remove } from "../shared/removal.ts";
import type { HostContext } from "../shared/session.ts";

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
  return `member-${cluster}`;
}

const RBAC = "rbac.authorization.k8s.io";
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

/** An observed object. Without `uid` if the credentials may not read it. */
interface Found {
  readonly uid?: string;
  readonly object?: Stored<KubeObject>;
}

/** A host's access in a member. A missing part is undefined. */
interface HostAccess {
  readonly role: Found | undefined;
  readonly binding: Found | undefined;
  readonly account: Found | undefined;
  /** Roles for types and for users' access, and their bindings. Empty if the credentials may not read them. */
  readonly types: readonly Owned[];
}

interface Owned {
  readonly resource: Resource<KubeObject>;
  readonly ref: ObjectRef;
  readonly object: Found;
}

/** Reads a host's access in a member, so that access granted later is not removed with it. Rejects with KubeError. */
export async function findAccess(client: ClusterClient, hostId: string, signal: AbortSignal): Promise<HostAccess> {
  const ref = { name: hostAccountName(hostId) };
  const account = await found(findAccount(client, hostId, signal));
  const role = await found(client.find(clusterRoles, ref, { signal }));
  const binding = await found(client.find(clusterRoleBindings, ref, { signal }));
  // The host's own credentials may not read the ClusterRole, which owns the account.
  const owner = account?.object?.metadata.ownerReferences?.find(({ kind }) => kind === clusterRoles.kind);
  const isUnread = role !== undefined && role.uid === undefined;
  const types = [
    ...(await typeRoles(client, clusterRoleBindings, hostId, signal)),
    ...(await typeRoles(client, clusterRoles, hostId, signal)),
  ];
  return { role: isUnread && owner !== undefined ? { uid: owner.uid } : role, binding, account, types };
}

async function typeRoles(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  hostId: string,
  signal: AbortSignal,
): Promise<readonly Owned[]> {
  const all = (await readable(listAll(client, resource, { labelSelector: `${HOST_LABEL}=${hostId}`, signal }))) ?? [];
  return all
    .filter(({ metadata: { name } }) => isOfHost(name, hostId))
    .map((object) => ({ resource, ref: { name: object.metadata.name }, object: { uid: object.metadata.uid, object } }));
}

/** Reports whether a role is one for types, or that by which `legation access` acts for users. */
function isOfHost(name: string, hostId: string): boolean {
  return name.startsWith(`${hostAccountName(hostId)}-`) || name === accessAccountName(hostId);
}

async function found(reading: Promise<Stored<KubeObject> | undefined>): Promise<Found | undefined> {
  const read = await readable(reading.then((object) => ({ object })));
  if (read === undefined) return {};
  const { object } = read;
  return object === undefined ? undefined : { uid: object.metadata.uid, object };
}

/** Removes a host's access by uid. Reports what remains because the credentials do not permit its removal. */
export async function giveUpAccess(
  client: ClusterClient,
  hostId: string,
  { role, binding, account, types }: HostAccess,
  { signal, report, remains }: Pick<HostContext, "signal" | "report"> & { readonly remains: (what: string) => void },
): Promise<void> {
  const name = hostAccountName(hostId);
  const system = { namespace: SYSTEM_NAMESPACE, name };
  const removed = (what: string): void => report(`${client.cluster}: ${what} removed`);
  const removeFound = (resource: Resource<KubeObject>, ref: ObjectRef, { uid }: Found): Promise<boolean> =>
    remove(client, resource, ref, { signal, ...(uid === undefined ? {} : { uid }) });
  if (role !== undefined) {
    try {
      if (await removeFound(clusterRoles, { name }, role)) removed(`ClusterRole ${name}`);
      // The role is gone with what it owns, or belongs to a new join.
      else if (role.uid !== undefined) return;
    } catch (error) {
      if (!isKubeError(error)) throw error;
      remains(`ClusterRole ${name}, its ClusterRoleBinding and ServiceAccount: ${error.detail}`);
      return;
    }
  }
  // Kubernetes removes these with the ClusterRole that owns them. Deletes them at once where the rights permit.
  const owned = [
    { resource: clusterRoleBindings, ref: { name }, object: binding },
    { resource: serviceAccounts, ref: system, object: account },
    ...types,
  ];
  for (const { resource, ref, object } of owned) {
    if (object === undefined) continue;
    const what = objectText(resource.kind, ref);
    try {
      if (await removeFound(resource, ref, object)) removed(what);
    } catch (error) {
      if (!isKubeError(error, "Forbidden", "Unauthorized")) throw error;
      removed(`${what} (with its ClusterRole)`);
    }
  }
}
