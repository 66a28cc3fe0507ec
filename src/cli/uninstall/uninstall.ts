import type { Cluster } from "../../api/cluster.ts";
import { clusterOfNode, VIRTUAL_NODE_PREFIX } from "../../api/keys.ts";
import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import { isFinished } from "../../copies/jobs.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { leases, nodes } from "../../kube/resources.ts";
import { controllerOf } from "../../pods/pod-state.ts";
import { findCredentials, removeCredentials } from "../member/credentials.ts";
import { isVirtualNodeOf, NODE_LEASE_NAMESPACE, removeCluster, removeVirtualNode } from "../member/remove-cluster.ts";
import { Discovery } from "../shared/discovery.ts";
import { Failure } from "../shared/failure.ts";
import { type KindName, kindsOf, type Manifest } from "../shared/manifests.ts";
import { counted, some } from "../shared/output.ts";
import { findClusters, jobName, unfinished } from "../shared/reading.ts";
import { remove } from "../shared/removal.ts";
import type { HostContext } from "../shared/session.ts";
import { countOf, unfinishedText } from "../shared/unfinished.ts";
import { leaveMembers } from "./members.ts";
import { type RemovalContext, removeInstalled, removeSystemNamespace, unlabelNamespaces } from "./objects.ts";
import { listMarkedPods, releaseProxy, unmarkOverflow } from "./proxies.ts";
import { listMarkedJobs, releaseJob, unmarkCronJobs } from "./whole-jobs.ts";

/** Result of an uninstallation. */
export interface Uninstalled {
  /** Objects that remain in members or on the host, and why. */
  readonly remained: readonly string[];
  /** Namespaces that were opted in. */
  readonly namespaces: readonly string[];
}

// Admission would refuse or undo the removal of Legation's marks.
const ADMISSION_KINDS = [
  "MutatingWebhookConfiguration",
  "ValidatingWebhookConfiguration",
  "ValidatingAdmissionPolicyBinding",
  "ValidatingAdmissionPolicy",
];
// `install` writes one ConfigMap that no manifest holds.
const CONFIG_MAP: KindName = { apiVersion: "v1", kind: "ConfigMap" };
// A running controller, in the cluster or outside, would restore what is removed.
const RUNNING_KINDS = ["Deployment", "ClusterRoleBinding", "RoleBinding"];

const BEING_COLLECTED =
  "on virtual nodes: Kubernetes deletes the pods of a node that is gone, within about a minute; get now what you need of them";

/** Pods and Jobs with Legation's marks, finished or not. */
interface Marked {
  readonly pods: readonly Stored<Pod>[];
  readonly jobs: readonly Stored<Job>[];
}

/** Removes Legation from the host. Safe to repeat. */
export async function uninstall(
  manifests: readonly Manifest[],
  { force }: { readonly force: boolean },
  context: HostContext,
): Promise<Uninstalled> {
  const { host, signal, report } = context;
  const discovery = new Discovery(host, signal);
  const remained: string[] = [];
  // Reported at once, so that a later error or an interruption does not lose it.
  const remains = (what: string): void => {
    if (remained.includes(what)) return;
    remained.push(what);
    report(`remains: ${what}`);
  };
  const removal: RemovalContext = { host, discovery, signal, report, remains };
  const listMarked = async (): Promise<Marked> => {
    const [pods, jobs] = await Promise.all([listMarkedPods(host, signal), listMarkedJobs(host, signal)]);
    return { pods, jobs };
  };
  refuseRunning(await listMarked(), force, "");

  const kinds = [...kindsOf(manifests), CONFIG_MAP];
  await removeInstalled(
    [...ADMISSION_KINDS, ...RUNNING_KINDS].flatMap((kind) => kinds.filter((each) => each.kind === kind)),
    removal,
  );
  const unmarkedCronJobs = await unmarkCronJobs(host, signal);
  if (unmarkedCronJobs.length > 0) report(`this cluster runs the next Jobs of ${some(unmarkedCronJobs)}`);
  // Without the webhook no new proxy or whole Job appears, so these lists are complete.
  const marked = await listMarked();
  const proxies = marked.pods;
  refuseRunning(marked, force, "; the webhook is removed already: `legation install` puts it back");

  const joined = (await findClusters(host, signal)) ?? [];
  await leaveMembers(joined, { ...context, remains });
  for (const proxy of proxies) await releaseProxy(host, proxy, signal);
  if (proxies.length > 0) report(`${counted(proxies.length, "proxy pod")} released`);
  const finished = proxies.length - unfinished(proxies).length;
  if (finished > 0) report(`${counted(finished, "finished pod")} ${BEING_COLLECTED}`);
  await releaseJobs(marked.jobs, context);
  const unmarked = await unmarkOverflow(removal);
  if (unmarked > 0) report(`${counted(unmarked)} in overflow mode ${unmarked === 1 ? "is" : "are"} the host's alone`);
  for (const cluster of joined) {
    await removeClusterNow(cluster, context);
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

function refuseRunning({ pods, jobs }: Marked, force: boolean, more: string): void {
  const running = { pods: unfinished(pods), jobs: jobs.filter((job) => !isFinished(job)) };
  if (force || countOf(running) === 0) return;
  const words = { noun: "delegated pod", does: "has not finished", many: "have not finished" };
  const started = "they are deleted, and their controllers start them on the host";
  const alone = running.jobs.length === 0 ? "" : "; a Job that no controller makes has to be created again";
  throw new Failure("refused", {
    object: "Legation",
    problem: unfinishedText(running, words) + more,
    remedy: `delete their workloads first, or add --force: ${started}${alone}`,
  });
}

async function releaseJobs(jobs: readonly Stored<Job>[], { host, signal, report }: HostContext): Promise<void> {
  for (const job of jobs) {
    await releaseJob(host, job, signal);
    const end =
      controllerOf({ metadata: job.metadata }) === undefined
        ? "nothing makes it again"
        : "its controller makes what follows";
    if (!isFinished(job)) report(`Job ${jobName(job)} had not finished, and is deleted: ${end}`);
  }
  const finished = jobs.filter(isFinished).length;
  if (finished > 0) report(`${counted(finished, "finished whole Job")} released, with the status as it is`);
}

/** Removes a Cluster and its credentials in the place of the controller, which is gone. */
async function removeClusterNow(cluster: Stored<Cluster>, { host, signal, report }: HostContext): Promise<void> {
  const { name } = cluster.metadata;
  const stored = await findCredentials(host, name, cluster, signal);
  await removeCluster(host, cluster, { patienceMs: 0, force: true, signal });
  await removeCredentials(host, name, stored, { signal, report });
}

async function removeVirtualNodes(host: ClusterClient, signal: AbortSignal): Promise<void> {
  // Not selected by label, which a user may have removed.
  for (const node of await listAll(host, nodes, { dropManagedFields: true, signal })) {
    const cluster = clusterOfNode(node.metadata.name);
    if (cluster !== undefined && isVirtualNodeOf(node, cluster)) await removeVirtualNode(host, cluster, signal);
  }
  // Removes leases whose node is gone; a real node may have such a name.
  const rest = await listAll(host, leases, { namespace: NODE_LEASE_NAMESPACE, signal });
  for (const { metadata } of rest) {
    if (!metadata.name.startsWith(VIRTUAL_NODE_PREFIX)) continue;
    if ((await host.find(nodes, { name: metadata.name }, { signal })) !== undefined) continue;
    await remove(host, leases, { namespace: NODE_LEASE_NAMESPACE, name: metadata.name }, { uid: metadata.uid, signal });
  }
}
