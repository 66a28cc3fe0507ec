import type { DelegatedType } from "../../api/delegated-type.ts";
import {
  clusterOfNode,
  HOST_LABEL,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  NODE_LEASE_NAMESPACE,
  SYSTEM_NAMESPACE,
  TYPE_ROLE_LABEL,
  VIRTUAL_NODE_LABEL,
  VIRTUAL_NODE_PREFIX,
} from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { RELAY_SLICE_MANAGER } from "../../api/relay.ts";
import { counted, countedAre } from "../../api/wording.ts";
import { SLICE_MANAGER_LABEL } from "../../copies/services.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { ServedResource } from "../../kube/optional-resource.ts";
import { endpointSlices, leases, namespaces, nodes, secrets, serviceImports } from "../../kube/resources.ts";
import { controllerOf } from "../../pods/pod-state.ts";
import { clusterRoles } from "../member/access.ts";
import { joinedMemberOf } from "../member/credentials.ts";
import { type Finishing, namesOf, unfinishedText, wholeName } from "../member/delegated.ts";
import { isVirtualNodeOf, removeVirtualNode } from "../member/virtual-node.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import { Discovery } from "../shared/discovery.ts";
import { Failure } from "../shared/failure.ts";
import { type KindName, kindsOf, type Manifest } from "../shared/manifests.ts";
import { some } from "../shared/output.ts";
import { clusterId, findClusters, unfinished } from "../shared/reading.ts";
import { remove } from "../shared/removal.ts";
import { deleteProxy, listMarkedPods, listMarkedWhole, releaseWhole, unmarkMakers, unmarkOverflow } from "./marked.ts";
import {
  type RemovalContext,
  removeFurtherNamespaces,
  removeInstalled,
  removeSelected,
  removeSystemNamespace,
  type UninstallContext,
  unlabelNamespaces,
} from "./objects.ts";

export interface Uninstalled {
  /** Objects that remain on the host, and why. */
  readonly remained: readonly string[];
  readonly namespaces: readonly string[];
}

// Objects of these kinds go first, in this order.
const FIRST_KINDS = [
  // An aggregated API without a server keeps every namespace from being deleted.
  "APIService",
  // Admission would refuse or undo the removal of Legation's marks.
  "MutatingWebhookConfiguration",
  "ValidatingWebhookConfiguration",
  "ValidatingAdmissionPolicyBinding",
  "ValidatingAdmissionPolicy",
  // A running controller, in the cluster or outside, would restore what is removed.
  "Deployment",
  "ClusterRoleBinding",
  "RoleBinding",
];
// `install` writes one ConfigMap that no manifest holds.
const CONFIG_MAP: KindName = { apiVersion: "v1", kind: "ConfigMap" };

/** Removes Legation from a host without members. Safe to repeat. */
export async function uninstall(
  manifests: readonly Manifest[],
  { force }: { readonly force: boolean },
  context: UninstallContext,
): Promise<Uninstalled> {
  const { host, signal, report } = context;
  const remained: string[] = [];
  // Reported at once, so that a later error or an interruption does not lose it.
  const remains = (what: string): void => {
    if (remained.includes(what)) return;
    remained.push(what);
    report(`remains: ${what}`);
  };
  const removal: RemovalContext = { host, discovery: new Discovery(host, signal), signal, report, remains };
  // Finished or not.
  const listMarked = async (): Promise<Finishing> => {
    const [pods, whole] = await Promise.all([listMarkedPods(host, signal), listMarkedWhole(host, signal)]);
    return { pods, whole };
  };
  refuseRunning(await listMarked(), force, "");
  refuseTypes(await listDelegatedTypes(host, signal));
  await refuseJoined(host, signal);

  const kinds = [...kindsOf(manifests), CONFIG_MAP];
  const first = FIRST_KINDS.flatMap((kind) => kinds.filter((each) => each.kind === kind));
  await removeInstalled(first, removal);
  const unmarkedCronJobs = await unmarkMakers(host, signal);
  if (unmarkedCronJobs.length > 0) report(`this cluster runs the next Jobs of ${some(unmarkedCronJobs)}`);
  // Without the webhook no new proxy or whole Job appears, so these lists are complete.
  const marked = await listMarked();
  refuseRunning(marked, force, "; the webhook is removed already: `legation install` puts it back");

  for (const proxy of marked.pods) await deleteProxy(host, proxy, signal);
  if (marked.pods.length > 0) report(`${counted(marked.pods.length, "delegated pod")} deleted`);
  await releaseAll(marked.whole, context);
  const unmarked = await unmarkOverflow(removal);
  if (unmarked > 0) report(`${countedAre(unmarked, "in overflow mode")} the host's alone`);
  await removeVirtualNodes(host, signal);
  const optedIn = await unlabelNamespaces(context);
  await removeSelected(clusterRoles, `${TYPE_ROLE_LABEL},!${HOST_LABEL}`, removal);
  const rest = kinds.filter(({ kind }) => kind !== namespaces.kind);
  await removeInstalled(rest, removal);
  // Their Services stay, and would lead to addresses that other pods get.
  await removeSelected(endpointSlices, `${SLICE_MANAGER_LABEL}=${RELAY_SLICE_MANAGER}`, removal);
  // ServiceImports own their Services and slices. Those of another host stay.
  const imports = await new ServedResource(host, serviceImports).find(signal);
  if (imports !== undefined) {
    const own = `${MANAGED_BY_LABEL}=${MANAGED_BY},${HOST_LABEL}=${await clusterId(host, signal)}`;
    await removeSelected(imports, own, removal);
  }
  await removeFurtherNamespaces(removal);
  await removeSystemNamespace(removal);
  return { remained, namespaces: optedIn };
}

function refuseRunning({ pods, whole }: Finishing, force: boolean, more: string): void {
  const running = { pods: unfinished(pods), whole: whole.filter(({ type, object }) => !type.isFinished(object)) };
  if (force || namesOf(running).size === 0) return;
  const words = { pod: "delegated pod", does: "has not finished", many: "have not finished" };
  throw new Failure("refused", {
    object: "Legation",
    problem: unfinishedText(running, words) + more,
    remedy:
      "delete their workloads first, or add --force: they are deleted, and their controllers start them on the host; " +
      "what no controller makes has to be created again",
  });
}

/** Refuses while there are DelegatedTypes: the controller releases their objects when they are deleted. */
function refuseTypes(types: readonly Stored<DelegatedType>[]): void {
  if (types.length === 0) return;
  throw new Failure("refused", {
    object: "Legation",
    problem: `has ${counted(types.length, "DelegatedType")}: ${some(types.map(({ metadata }) => metadata.name))}`,
    remedy: "run `kubectl delete delegatedtypes.legation.dev --all` first: the controller releases their objects",
  });
}

/** Refuses while members are joined, or were without `unjoin`: only the host's credentials clean them. */
async function refuseJoined(host: ClusterClient, signal: AbortSignal): Promise<void> {
  const joined = (await findClusters(host, signal)) ?? [];
  const selection = { namespace: SYSTEM_NAMESPACE, labelSelector: VIRTUAL_NODE_LABEL, signal };
  const stored = (await listAll(host, secrets, selection)).flatMap((each) => joinedMemberOf(each) ?? []);
  const members = [...new Set([...joined.map(({ metadata }) => metadata.name), ...stored])].sort();
  if (members.length === 0) return;
  throw new Failure("refused", {
    object: "Legation",
    problem: `has ${counted(members.length, "member")}: ${some(members)}`,
    remedy: `run \`legation unjoin ${members[0]}\` first${members.length === 1 ? "" : ", and the same for the others"}; add --force for a member that is gone for good`,
  });
}

async function releaseAll(whole: Finishing["whole"], { host, signal, report }: UninstallContext): Promise<void> {
  const finished = whole.filter(({ type, object }) => type.isFinished(object));
  for (const found of whole) {
    await releaseWhole(host, found, signal);
    if (finished.includes(found)) continue;
    const isMade = controllerOf({ metadata: found.object.metadata }) !== undefined;
    const end = isMade ? "its controller makes what follows" : "nothing makes it again";
    report(`${wholeName(found)} had not finished, and is deleted: ${end}`);
  }
  for (const [kind, those] of Map.groupBy(finished, ({ type }) => type.resource.kind)) {
    report(`${counted(those.length, `finished whole ${kind}`)} released, with the status as it is`);
  }
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
