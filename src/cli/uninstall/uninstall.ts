import type { Cluster } from "../../api/cluster.ts";
import { CLUSTER_FINALIZER, clusterOfNode, SYSTEM_NAMESPACE, VIRTUAL_NODE_PREFIX } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { apiVersionOf, leases, nodes, secrets } from "../../kube/resources.ts";
import { counted, some } from "../counted.ts";
import { Discovery } from "../discovery/discovery.ts";
import { Failure } from "../failure.ts";
import { type KindName, kindsOf } from "../manifests/installed.ts";
import type { Manifest } from "../manifests/load.ts";
import { isVirtualNodeOf, NODE_LEASE_NAMESPACE, removeVirtualNode } from "../member/remove-cluster.ts";
import type { HostContext } from "../member/stored-connection.ts";
import { podName, unfinished } from "../proxies/list.ts";
import { dropFinalizer, remove } from "../removal.ts";
import { leaveMembers } from "./members.ts";
import { unlabelNamespaces } from "./namespaces.ts";
import { type RemovalContext, removeInstalled } from "./objects.ts";
import { listMarkedPods, releaseProxy, unmarkOverflow } from "./proxies.ts";
import { isOwnSecret, removeSystemNamespace } from "./system-namespace.ts";

/** The result of an uninstallation. */
export interface Uninstalled {
  /** Objects that remain in members or on the host, and why. */
  readonly remained: readonly string[];
  /** Namespaces that were opted in. */
  readonly namespaces: readonly string[];
}

// These refuse or undo the removal of Legation's own marks while they are there.
const ADMISSION_KINDS = [
  "MutatingWebhookConfiguration",
  "ValidatingWebhookConfiguration",
  "ValidatingAdmissionPolicyBinding",
  "ValidatingAdmissionPolicy",
];
// `install` writes this object, which is in no manifest.
const CONFIG_MAP: KindName = { apiVersion: "v1", kind: "ConfigMap" };
// The controller in the cluster, then the rights of one that runs outside: it must not put back what is taken away.
const RUNNING_KINDS = ["Deployment", "ClusterRoleBinding", "RoleBinding"];

const BEING_COLLECTED =
  "on virtual nodes: Kubernetes deletes the pods of a node that is gone, within about a minute; get now what you need of them";

/** Takes Legation off the host. May be repeated: what is gone already is passed over. */
export async function uninstall(
  manifests: readonly Manifest[],
  { force }: { readonly force: boolean },
  context: HostContext,
): Promise<Uninstalled> {
  const { host, signal, report } = context;
  const discovery = new Discovery(host, signal);
  const remained: string[] = [];
  // At once, too: an error or an interruption further on must not lose it.
  const remains = (what: string): void => {
    if (remained.includes(what)) return;
    remained.push(what);
    report(`remains: ${what}`);
  };
  const removal: RemovalContext = { host, discovery, signal, report, remains };
  refuseRunning(await listMarkedPods(host, signal), force, "");

  const kinds = [...kindsOf(manifests), CONFIG_MAP];
  await removeInstalled(
    [...ADMISSION_KINDS, ...RUNNING_KINDS].flatMap((kind) => kinds.filter((each) => each.kind === kind)),
    removal,
  );
  // From here on no proxy can come to be, so what is found now is all there is.
  const proxies = await listMarkedPods(host, signal);
  refuseRunning(proxies, force, "; the webhook is removed already: `legation install` puts it back");

  const joined = await listClusters(host, discovery, signal);
  await leaveMembers(joined, { ...context, remains });
  for (const proxy of proxies) await releaseProxy(host, proxy, signal);
  if (proxies.length > 0) report(`${counted(proxies.length, "proxy pod")} released`);
  const finished = proxies.length - unfinished(proxies).length;
  if (finished > 0) report(`${counted(finished, "finished pod")} ${BEING_COLLECTED}`);
  const overflow = await unmarkOverflow(host, signal);
  const { unmarked } = overflow;
  if (unmarked > 0) report(`${counted(unmarked)} in overflow mode ${unmarked === 1 ? "is" : "are"} the host's alone`);
  for (const what of overflow.remained) remains(what);
  for (const cluster of joined) {
    await removeClusterNow(host, cluster, signal);
    report(`Cluster ${cluster.metadata.name} removed`);
  }
  await removeVirtualNodes(host, signal);
  const optedIn = await unlabelNamespaces(context);
  await removeInstalled(
    kinds.filter(({ kind }) => kind !== "Namespace"),
    removal,
  );
  await removeSystemNamespace(removal);
  return { remained, namespaces: optedIn };
}

function refuseRunning(proxies: Parameters<typeof unfinished>[0], force: boolean, more: string): void {
  const running = unfinished(proxies);
  if (running.length === 0 || force) return;
  throw new Failure("refused", {
    object: "Legation",
    problem: `${counted(running.length, "delegated pod")} ${running.length === 1 ? "has" : "have"} not finished: ${some(running.map(podName))}${more}`,
    remedy:
      "delete their workloads first, or add --force: they are deleted, and their controllers start them on the host",
  });
}

async function listClusters(
  host: ClusterClient,
  discovery: Discovery,
  signal: AbortSignal,
): Promise<readonly Stored<Cluster>[]> {
  const served = await discovery.find(apiVersionOf(clusters), clusters.kind);
  return served === undefined ? [] : await listAll(host, clusters, { signal });
}

/** Without waiting for the controller, which is gone. */
async function removeClusterNow(
  host: ClusterClient,
  { metadata, spec }: Stored<Cluster>,
  signal: AbortSignal,
): Promise<void> {
  const { name, uid } = metadata;
  await remove(host, clusters, { name }, { uid, signal });
  const rest = await host.find(clusters, { name }, { signal });
  if (rest?.metadata.uid === uid) await dropFinalizer(host, clusters, rest, CLUSTER_FINALIZER, signal);
  const ref = { namespace: SYSTEM_NAMESPACE, name: spec.credentialsSecret.name };
  const stored = await host.find(secrets, ref, { signal });
  if (stored !== undefined && isOwnSecret(stored))
    await remove(host, secrets, ref, { uid: stored.metadata.uid, signal });
}

async function removeVirtualNodes(host: ClusterClient, signal: AbortSignal): Promise<void> {
  // Not by their label, which somebody may have taken off.
  for (const node of await listAll(host, nodes, { dropManagedFields: true, signal })) {
    const cluster = clusterOfNode(node.metadata.name);
    if (cluster !== undefined && isVirtualNodeOf(node, cluster)) await removeVirtualNode(host, cluster, signal);
  }
  // Leases of virtual nodes that went without them; a real node may have such a name, so it must be gone.
  const rest = await listAll(host, leases, { namespace: NODE_LEASE_NAMESPACE, signal });
  for (const { metadata } of rest) {
    if (!metadata.name.startsWith(VIRTUAL_NODE_PREFIX)) continue;
    if ((await host.find(nodes, { name: metadata.name }, { signal })) !== undefined) continue;
    await remove(host, leases, { namespace: NODE_LEASE_NAMESPACE, name: metadata.name }, { uid: metadata.uid, signal });
  }
}
