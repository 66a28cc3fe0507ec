import { ACCESS_NAMESPACE } from "../../api/access.ts";
import {
  CONTROLLER_LEASE,
  DELEGATION_LABEL,
  HOST_LABEL,
  INSTALLED_LABELS,
  PART_OF_LABEL,
  SYSTEM_NAMESPACE,
  UI_NAMESPACE,
} from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { MEMBER_RELAY_NAMESPACE, RELAY_NAMESPACE } from "../../api/relay.ts";
import { listAll } from "../../kube/list.ts";
import { leases, namespaces, type Resource, secrets, serviceAccounts } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Discovery } from "../shared/discovery.ts";
import { type KindName, listInstalled } from "../shared/manifests.ts";
import { some } from "../shared/output.ts";
import { refOf, remove, unlessGone } from "../shared/removal.ts";
import type { HostContext } from "../shared/session.ts";
import { until, withoutRepeats } from "../shared/wait.ts";

export type UninstallContext = Pick<HostContext, "host" | "signal" | "report">;

export interface RemovalContext extends UninstallContext {
  readonly discovery: Discovery;
  /** Records and reports an object that remains, and why. */
  readonly remains: (what: string) => void;
  readonly clock?: Clock;
}

/** Deletes the installed objects of these kinds, and waits until they are gone. */
export async function removeInstalled(kinds: readonly KindName[], context: RemovalContext): Promise<void> {
  const { host, discovery, signal } = context;
  for (const { apiVersion, kind } of kinds) {
    const resource = await discovery.find(apiVersion, kind);
    if (resource === undefined) continue;
    for (const object of await listInstalled(host, resource, signal)) {
      await removeAndWait(resource, object, context);
    }
  }
}

/** Deletes the objects with these labels, and waits until they are gone. */
export async function removeSelected(
  resource: Resource<KubeObject>,
  labelSelector: string,
  removal: RemovalContext,
): Promise<void> {
  const found = await listAll(removal.host, resource, { labelSelector, signal: removal.signal });
  for (const object of found) await removeAndWait(resource, object, removal);
}

const GONE_WITHIN_MS = 60_000;

/** Deletes one object and waits until it is gone. On timeout it remains. */
export async function removeAndWait(
  resource: Resource<KubeObject>,
  object: Stored<KubeObject>,
  { host, signal, report, remains, ...options }: RemovalContext,
): Promise<void> {
  const { name, uid } = object.metadata;
  const ref = refOf(object.metadata);
  const what = `${resource.kind} ${name}`;
  await remove(host, resource, ref, { uid, signal });
  const tell = withoutRepeats(report);
  const isGone = await until(
    async () => {
      if ((await host.find(resource, ref, { signal }))?.metadata.uid !== uid) return true;
      tell(`${what} is being deleted; waiting until it is gone`);
      return false;
    },
    { timeoutMs: GONE_WITHIN_MS, signal, ...options },
  );
  if (isGone) report(`${what} removed`);
  else remains(`${what}: it is being deleted, but was not gone after ${GONE_WITHIN_MS / 1000} s`);
}

/** Opts all namespaces out. Resolves to their names. Rejects with KubeError. */
export async function unlabelNamespaces({ host, signal, report }: UninstallContext): Promise<string[]> {
  const unlabelled: string[] = [];
  for (const { metadata } of await listAll(host, namespaces, { labelSelector: DELEGATION_LABEL, signal })) {
    const body = { metadata: { uid: metadata.uid, labels: { [DELEGATION_LABEL]: null } } };
    const change = host.patch(namespaces, { name: metadata.name }, { type: "merge", body }, { signal });
    if ((await unlessGone(change.then(() => true))) === undefined) continue;
    report(`Namespace ${metadata.name}: label ${DELEGATION_LABEL}=${metadata.labels?.[DELEGATION_LABEL]} taken off`);
    unlabelled.push(metadata.name);
  }
  return unlabelled;
}

/** Removes the namespaces of `legation access`, of the relay and of the page for a team. Leaves one of their names that others made. */
export async function removeFurtherNamespaces(removal: RemovalContext): Promise<void> {
  for (const name of [ACCESS_NAMESPACE, MEMBER_RELAY_NAMESPACE, RELAY_NAMESPACE, UI_NAMESPACE]) {
    const namespace = await removal.host.find(namespaces, { name }, { signal: removal.signal });
    const isOwn = namespace?.metadata.labels?.[PART_OF_LABEL] === INSTALLED_LABELS[PART_OF_LABEL];
    if (namespace !== undefined && (isOwn || name === ACCESS_NAMESPACE)) {
      await removeAndWait(namespaces, namespace, removal);
    }
  }
}

/** Removes Legation's namespace, unless other hosts have their access to this cluster in it. */
export async function removeSystemNamespace(removal: RemovalContext): Promise<void> {
  const { host, signal, remains } = removal;
  const namespace = await host.find(namespaces, { name: SYSTEM_NAMESPACE }, { signal });
  if (namespace === undefined) return;
  const inNamespace = { namespace: SYSTEM_NAMESPACE, signal };
  const accounts = await listAll(host, serviceAccounts, { ...inNamespace, labelSelector: HOST_LABEL });
  if (accounts.length === 0) return await removeAndWait(namespaces, namespace, removal);
  for (const { metadata } of await listAll(host, leases, inNamespace)) {
    // The Leases of shards and of replicas begin with its name.
    if (metadata.name.startsWith(CONTROLLER_LEASE)) await remove(host, leases, metadata, { signal });
  }
  const others: string[] = [];
  for (const { metadata, type } of await listAll(host, secrets, { ...inNamespace, labelSelector: `!${HOST_LABEL}` })) {
    // Kubernetes removes a token with its service account.
    if (type === "kubernetes.io/service-account-token") continue;
    const { name, uid, labels = {} } = metadata;
    const isOwn = Object.entries(INSTALLED_LABELS).every(([key, value]) => labels[key] === value);
    if (isOwn) await remove(host, secrets, { namespace: SYSTEM_NAMESPACE, name }, { uid, signal });
    else others.push(name);
  }
  const users = accounts.map(({ metadata }) => metadata.name);
  remains(`Namespace ${SYSTEM_NAMESPACE}: this cluster is a member of other hosts: ${some(users)}`);
  if (others.length > 0) remains(`Secrets in ${SYSTEM_NAMESPACE} that Legation did not make: ${some(others)}`);
}
