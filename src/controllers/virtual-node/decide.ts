import { defined } from "../../api/defined.ts";
import { jsonEqual } from "../../api/json.ts";
import { CLUSTER_FINALIZER, NODE_LABELS_ANNOTATION, NODE_TAINTS_ANNOTATION } from "../../api/keys.ts";
import type { KubeNode, NodeCondition, NodeStatus, ResourceList, Stored } from "../../api/kubernetes.ts";
import { parseAmounts } from "../../api/quantity.ts";
import { isOutOfService } from "../../placement/member-candidate.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { type Decision, lookAgain } from "../../runtime/requeue.ts";
import {
  clusterTaints,
  desiredLabels,
  desiredNode,
  desiredStatus,
  desiredTaints,
  endpointStatus,
  type NodeStatusParts,
} from "./decide-node.ts";
import { clusterStatus, withRemovals } from "./decide-status.ts";
import type { Action, Observed } from "./model.ts";

/**
 * A Lease of 40 s, and a status heartbeat every 5 min without changes, are kubelets' defaults. Three renewals fit a Lease, as with a
 * kubelet's every 10 s, and a thousand nodes take fewer writes.
 */
export const LEASE_SECONDS = 40;
export const RENEW_EVERY_MS = 12_000;
const HEARTBEAT_EVERY_MS = 300_000;
// Counters in a Cluster's status change with every pod. People need them this often at most, and the host bears so many of all members.
const REPORT_EVERY_MS = 10_000;
const REPORTS_PER_SECOND = 20;
const WITHDRAWN_AGAIN_MS = 500;
// No event tells that the last waiting pod of a lost member is gone.
const AWAITED_AGAIN_MS = 10_000;
const KUBELET_CONDITIONS: ReadonlySet<string> = new Set(["MemoryPressure", "DiskPressure", "PIDPressure"]);

export function decide(observed: Observed, now: number, wall: number = now): Decision<Action> {
  const { cluster, node, facts } = observed;
  if (observed.unread === true) return read(observed, now);
  if (cluster === undefined) return { actions: removal(node), outcome: "Removed" };
  const leaving = cluster.metadata.deletionTimestamp !== undefined;
  // The node goes after its last proxy. Delegates that wait for a node are withdrawn before: without the connection one might start
  // when its proxy has another. A member that does not answer may start them, unless an operator declared its node out of service.
  const isAwaited = facts.waiting > 0 && (facts.reachable || !isOutOfService(node));
  if (leaving && facts.proxies === 0 && !isAwaited) return decideRemoval(observed);

  const alive = facts.reachable || facts.spared !== undefined;
  const actions: Action[] = [];
  const times: number[] = leaving && isAwaited ? [now + (facts.reachable ? WITHDRAWN_AGAIN_MS : AWAITED_AGAIN_MS)] : [];
  // The Lease comes first, whatever else is refused or slow. As for a lost kubelet, it is not renewed for a lost member.
  if (node !== undefined && alive) {
    const lease = renewal(observed, node, now);
    actions.push(...lease.actions);
    times.push(lease.againAt);
  }
  const held = cluster.metadata.finalizers?.includes(CLUSTER_FINALIZER) ?? false;
  if (!held && !leaving) actions.push({ type: "addFinalizer" });
  // The Cluster's labels and taints come last: the API server may refuse them.
  const changes: Action[] = [];
  if (leaving && node !== undefined && node.spec?.unschedulable !== true) {
    changes.push({ type: "patchNode", patch: { spec: { unschedulable: true } } });
  }
  if (node === undefined) {
    const create: Action = { type: "createNode", node: desiredNode(observed, wall) };
    // The status that tells of a refusal goes first.
    (observed.refused === undefined ? actions : changes).push(create);
  } else {
    const heartbeatDue = alive && now - observed.heartbeatAt >= HEARTBEAT_EVERY_MS;
    const patch = nodePatch(observed, node, heartbeatDue);
    if (patch !== undefined) changes.push({ type: "patchNode", patch });
    const status = desiredStatus(observed, node, wall);
    const unknowns = alive ? unknownConditions(node) : [];
    if (heartbeatDue || unknowns.length > 0 || statusDiffers(node, status, observed.features)) {
      const conditions = [...status.conditions, ...unknowns.map((type) => ({ type, $patch: "delete" }))];
      const amounts = defined({ capacity: status.capacity, allocatable: status.allocatable });
      const removals = withRemovals(node.status ?? {}, amounts);
      const parts = { ...status, ...removals, ...replacingAddresses(status), conditions };
      actions.push({ type: "patchNodeStatus", patch: { status: parts } });
    }
  }
  const isChanging = node === undefined || changes.length > 0;
  const status = clusterStatus(isChanging ? observed : { ...observed, refused: undefined }, wall);
  if (status !== undefined) {
    const due = status.urgent ? now : observed.reportedAt + reportEveryMs(observed.members);
    if (now >= due) actions.push({ type: "patchClusterStatus", status: status.body });
    else times.push(due);
  }
  actions.push(...changes);
  const outcome = leaving ? "Draining" : facts.reachable ? "Ready" : "NotReady";
  return { actions, outcome, ...lookAgain(...times) };
}

function reportEveryMs(members: number): number {
  return Math.max(REPORT_EVERY_MS, (members * 1000) / REPORTS_PER_SECOND);
}

/** Keeps a Ready node alive by the member's probe alone, while a new leader has not read its pods: a list may take minutes. */
function read(observed: Observed, now: number): Decision<Action> {
  const { node, facts } = observed;
  const endpoint = endpointPatch(observed);
  if (node === undefined || facts.answers !== true || !isNodeReady(node))
    return { actions: endpoint, outcome: "Reading" };
  const { actions, againAt } = renewal(observed, node, now);
  return { actions: [...actions, ...endpoint], outcome: "Reading", requeueAt: againAt };
}

function renewal(
  { renewedAt }: Observed,
  { metadata: { uid: nodeUid } }: Stored<KubeNode>,
  now: number,
): { readonly actions: readonly Action[]; readonly againAt: number } {
  const due = renewedAt + RENEW_EVERY_MS;
  if (now < due) return { actions: [], againAt: due };
  return { actions: [{ type: "renewLease", nodeUid }], againAt: now + RENEW_EVERY_MS };
}

/** API servers wait in vain at the endpoint of an earlier leader that hangs, or whose machine is gone. */
function endpointPatch({ node, endpoint }: Observed): Action[] {
  const parts = endpointStatus(endpoint);
  if (node === undefined || !partsDiffer(node, parts)) return [];
  return [{ type: "patchNodeEndpoint", patch: { status: { ...parts, ...replacingAddresses(parts) } } }];
}

function decideRemoval({ cluster, node, facts }: Observed): Decision<Action> {
  const outcome = "Removed";
  const held = cluster?.metadata.finalizers?.includes(CLUSTER_FINALIZER) ?? false;
  if (!held) return { actions: [], outcome };
  const release: Action = { type: "removeFinalizer" };
  // The node stays while the Cluster still waits: it carries the out-of-service taint.
  const actions = facts.waiting > 0 ? [release, ...removal(node)] : [...removal(node), release];
  return { actions, outcome };
}

function removal(node: Stored<KubeNode> | undefined): Action[] {
  return node === undefined || node.metadata.deletionTimestamp !== undefined
    ? []
    : [{ type: "deleteNode", uid: node.metadata.uid }];
}

/** Returns the patch of labels and taints. The annotation that records them alone is restored with the heartbeat only. */
function nodePatch(observed: Observed, node: Stored<KubeNode>, heartbeatDue: boolean): object | undefined {
  const wanted = desiredLabels(observed);
  const { labels: current = {}, annotations = {} } = node.metadata;
  const labels: Record<string, string | null> = {};
  for (const [key, value] of Object.entries(wanted)) if (current[key] !== value) labels[key] = value;
  const keys = Object.keys(wanted).join(",");
  const earlier = (annotations[NODE_LABELS_ANNOTATION] ?? "").split(",");
  for (const key of earlier) if (Object.hasOwn(current, key) && !Object.hasOwn(wanted, key)) labels[key] = null;
  const taints = desiredTaints(observed);
  const own = clusterTaints(observed.cluster);
  const written = own.length === 0 ? null : JSON.stringify(own);
  const areLabelsNoted = annotations[NODE_LABELS_ANNOTATION] === keys || !heartbeatDue;
  const noted = areLabelsNoted && (annotations[NODE_TAINTS_ANNOTATION] ?? null) === written;
  if (Object.keys(labels).length === 0 && taints === undefined && noted) return undefined;
  const notes = { [NODE_LABELS_ANNOTATION]: keys, [NODE_TAINTS_ANNOTATION]: written };
  // The patch replaces the whole list, so it has the resourceVersion as a precondition.
  const { resourceVersion } = node.metadata;
  return {
    metadata: { labels, annotations: notes, ...(taints === undefined ? {} : { resourceVersion }) },
    ...(taints === undefined ? {} : { spec: { taints } }),
  };
}

/** Returns the Unknown conditions that the node lifecycle controller added to a silent node. They make no sense for a whole cluster. */
function unknownConditions({ status }: KubeNode): string[] {
  return (status?.conditions ?? []).filter(isKubeletsUnknown).map(({ type }) => type);
}

function isKubeletsUnknown({ type, status }: NodeCondition): boolean {
  return status === "Unknown" && KUBELET_CONDITIONS.has(type);
}

function statusDiffers(node: KubeNode, wanted: NodeStatusParts, featuresWritten: readonly string[] = []): boolean {
  const { conditions, capacity, allocatable, declaredFeatures: features, ...rest } = wanted;
  const { status = {} } = node;
  // API servers before 1.36 drop declared features, and all drop an empty list: these are written once.
  const known = status.declaredFeatures ?? featuresWritten;
  if (features !== undefined && !jsonEqual(known, features)) return true;
  if (conditionsDiffer(status.conditions, conditions)) return true;
  if (capacity !== undefined && amountsDiffer(status.capacity, capacity)) return true;
  if (allocatable !== undefined && amountsDiffer(status.allocatable, allocatable)) return true;
  return partsDiffer(node, rest);
}

function partsDiffer({ status = {} }: KubeNode, wanted: NodeStatus): boolean {
  return (Object.keys(wanted) as (keyof NodeStatus)[]).some((field) => !jsonEqual(status[field], wanted[field]));
}

/** Compares quantities by value: the API server writes them in a form of its own (10000 pods are `10k`). */
function amountsDiffer(current: ResourceList | undefined, wanted: ResourceList): boolean {
  return !jsonEqual(parseAmounts(current), parseAmounts(wanted));
}

/** Compares conditions without their heartbeat times. */
function conditionsDiffer(current: readonly NodeCondition[] = [], wanted: readonly NodeCondition[]): boolean {
  return wanted.some((condition) => {
    const old = current.find(({ type }) => type === condition.type);
    return old?.status !== condition.status || old?.reason !== condition.reason || old?.message !== condition.message;
  });
}

/** Replaces all addresses: a strategic merge patch alone would keep those of other types, which API servers would try. */
function replacingAddresses({ addresses }: NodeStatus): object {
  return addresses === undefined ? {} : { addresses: [{ $patch: "replace" }, ...addresses] };
}

// The node lifecycle controller stops evictions in a zone of which more is lost than this share, and more than two nodes.
const UNHEALTHY_SHARE = 0.55;
const FEW = 2;

/** Reports whether so many members are lost at once that the host's network is the likelier cause: all of several, or most of many. */
export function isHostLikelyCutOff(lost: number, all: number): boolean {
  if (all < 2 || lost === 0) return false;
  return lost === all || (lost > FEW && lost / all >= UNHEALTHY_SHARE);
}
