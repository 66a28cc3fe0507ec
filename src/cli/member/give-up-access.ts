import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject, ObjectRef, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { type Resource, serviceAccounts } from "../../kube/resources.ts";
import { readable } from "../shared/reading.ts";
import { remove } from "../shared/removal.ts";
import { clusterRoleBindings, clusterRoles, findAccount, hostAccountName } from "./access.ts";

/** An observed object. Without `uid` if the credentials may not read it. */
interface Found {
  readonly uid?: string;
}

/** A host's access in a member. A missing part is undefined. */
export interface HostAccess {
  readonly role: Found | undefined;
  readonly binding: Found | undefined;
  readonly account: Found | undefined;
}

/** Reads a host's access in a member, so that access granted later is not removed with it. Rejects with KubeError. */
export async function findAccess(client: ClusterClient, hostId: string, signal: AbortSignal): Promise<HostAccess> {
  const ref = { name: hostAccountName(hostId) };
  const account = await found(findAccount(client, hostId, signal));
  const owner = account?.object?.metadata.ownerReferences?.find(({ kind }) => kind === clusterRoles.kind)?.uid;
  const role = await found(client.find(clusterRoles, ref, { signal }));
  const binding = await found(client.find(clusterRoleBindings, ref, { signal }));
  // The host's own credentials may not read the ClusterRole, which owns the account.
  const isUnread = role !== undefined && role.uid === undefined;
  return { role: isUnread && owner !== undefined ? { uid: owner } : role, binding, account };
}

async function found(
  reading: Promise<Stored<KubeObject> | undefined>,
): Promise<(Found & { readonly object?: Stored<KubeObject> }) | undefined> {
  const read = await readable(reading.then((object) => ({ object })));
  if (read === undefined) return {};
  const { object } = read;
  return object === undefined ? undefined : { uid: object.metadata.uid, object };
}

/** Removes a host's access by uid. Reports what remains because the credentials do not permit its removal. */
export async function giveUpAccess(
  client: ClusterClient,
  hostId: string,
  access: HostAccess,
  {
    signal,
    removed,
    remains,
  }: {
    readonly signal: AbortSignal;
    readonly removed: (what: string) => void;
    readonly remains: (what: string) => void;
  },
): Promise<void> {
  const name = hostAccountName(hostId);
  const role = `ClusterRole ${name}`;
  const account = { namespace: SYSTEM_NAMESPACE, name };
  const follow: readonly [Resource<KubeObject>, ObjectRef, Found | undefined, string][] = [
    [clusterRoleBindings, { name }, access.binding, `ClusterRoleBinding ${name}`],
    [serviceAccounts, account, access.account, `ServiceAccount ${SYSTEM_NAMESPACE}/${name}`],
  ];
  if (access.role !== undefined) {
    try {
      if (await removeFound(client, clusterRoles, { name }, access.role, signal)) removed(role);
      // The role is gone with what it owns, or belongs to a new join.
      else if (access.role.uid !== undefined) return;
    } catch (error) {
      if (!isKubeError(error)) throw error;
      remains(`${[role, ...follow.map(([, , , what]) => what)].join(", ")}: ${error.detail}`);
      return;
    }
  }
  // Kubernetes removes these two with the ClusterRole that owns them. Deletes them at once where the rights permit.
  for (const [resource, ref, object, what] of follow) {
    if (object === undefined) continue;
    try {
      if (await removeFound(client, resource, ref, object, signal)) removed(what);
    } catch (error) {
      if (!isKubeError(error, "Forbidden", "Unauthorized")) throw error;
      removed(`${what} (with its ClusterRole)`);
    }
  }
}

function removeFound(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  ref: ObjectRef,
  { uid }: Found,
  signal: AbortSignal,
): Promise<boolean> {
  return remove(client, resource, ref, { signal, ...(uid === undefined ? {} : { uid }) });
}
