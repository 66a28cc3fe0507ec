import { CONTROLLER_LEASE, HOST_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Secret, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { leases, namespaces, secrets, serviceAccounts } from "../../kube/resources.ts";
import { some } from "../counted.ts";
import { INSTALLED_LABELS } from "../manifests/labels.ts";
import { joinedMemberOf } from "../member/credentials.ts";
import { remove } from "../removal.ts";
import { type RemovalContext, removeAndWait } from "./objects.ts";

/** Legation's namespace, unless other hosts have their access to this cluster in it. */
export async function removeSystemNamespace(removal: RemovalContext): Promise<void> {
  const { host, signal, remains } = removal;
  const namespace = await host.find(namespaces, { name: SYSTEM_NAMESPACE }, { signal });
  if (namespace === undefined) return;
  const accounts = await listAll(host, serviceAccounts, {
    namespace: SYSTEM_NAMESPACE,
    labelSelector: HOST_LABEL,
    signal,
  });
  if (accounts.length > 0) {
    const others = await removeRuntimeObjects(host, signal);
    const users = accounts.map(({ metadata }) => metadata.name);
    remains(`Namespace ${SYSTEM_NAMESPACE}: this cluster is a member of other hosts: ${some(users)}`);
    if (others.length > 0) remains(`Secrets in ${SYSTEM_NAMESPACE} that Legation did not make: ${some(others)}`);
    return;
  }
  await removeAndWait(namespaces, namespace, removal);
}

/**
 * What Legation's processes and `join` made in its namespace: the webhook's certificate, members' credentials and the leader's
 * Lease. What an operator put there stays. Resolves to the names of the Secrets that do.
 */
async function removeRuntimeObjects(host: ClusterClient, signal: AbortSignal): Promise<readonly string[]> {
  await remove(host, leases, { namespace: SYSTEM_NAMESPACE, name: CONTROLLER_LEASE }, { signal });
  const stored = await listAll(host, secrets, {
    namespace: SYSTEM_NAMESPACE,
    labelSelector: `!${HOST_LABEL}`,
    signal,
  });
  const others: string[] = [];
  for (const secret of stored) {
    // The API server removes it with its account.
    if (secret.type === "kubernetes.io/service-account-token") continue;
    const { name, uid } = secret.metadata;
    if (isOwnSecret(secret)) await remove(host, secrets, { namespace: SYSTEM_NAMESPACE, name }, { uid, signal });
    else others.push(name);
  }
  return others;
}

/** Reports whether Legation made the Secret: the webhook's certificate, or a member's credentials from `join`. */
export function isOwnSecret(secret: Stored<Secret>): boolean {
  const { labels = {} } = secret.metadata;
  const isInstalled = Object.entries(INSTALLED_LABELS).every(([key, value]) => labels[key] === value);
  return isInstalled || joinedMemberOf(secret) !== undefined;
}
