import type { Cluster } from "../../api/cluster.ts";
import { writtenTaintsSchema } from "../../api/cluster-policy.ts";
import { withTransitionTime } from "../../api/conditions.ts";
import { defined } from "../../api/defined.ts";
import {
  EXCLUDE_DISRUPTION_LABEL,
  NODE_LABELS_ANNOTATION,
  NODE_TAINTS_ANNOTATION,
  providerIdOf,
  VIRTUAL_NODE_LABEL,
  VIRTUAL_NODE_TAINT,
  virtualNodeName,
} from "../../api/keys.ts";
import {
  type KubeNode,
  type NodeCondition,
  type NodeStatus,
  type NodeSystemInfo,
  type Taint,
  timestamp,
} from "../../api/kubernetes.ts";
import { formatAmounts } from "../../api/quantity.ts";
import { structuredTextReader } from "../../api/structured-text.ts";
import { HOSTNAME_LABEL, type KubeletEndpoint, labelsFromCluster, VIRTUAL_NODE_KIND } from "../../api/virtual-node.ts";
import type { NodeFacts, NodePods, Observed } from "./model.ts";

export type NodeStatusParts = NodeStatus & { readonly conditions: NodeCondition[] };

/** A node that was deleted comes back as cordoned and tainted as it was: its member is the same. */
export function desiredNode(observed: Observed, wall: number): KubeNode {
  const labels = desiredLabels(observed);
  const { unschedulable = false, taints: before = [] } = observed.deleted?.spec ?? {};
  const own = clusterTaints(observed.cluster);
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: virtualNodeName(observed.name),
      labels,
      annotations: {
        [NODE_LABELS_ANNOTATION]: Object.keys(labels).join(","),
        ...(own.length === 0 ? {} : { [NODE_TAINTS_ANNOTATION]: JSON.stringify(own) }),
      },
    },
    spec: {
      ...(unschedulable ? { unschedulable } : {}),
      taints: [...(desiredTaints({ ...observed, node: observed.deleted }) ?? before)],
      providerID: providerIdOf(observed.name),
    },
    status: desiredStatus(observed, undefined, wall),
  };
}

export function desiredLabels({ name, cluster, node, hostNodes }: Observed): Record<string, string> {
  const nodeName = virtualNodeName(name);
  const isExcluded = hostNodes ?? EXCLUDE_DISRUPTION_LABEL in (node?.metadata.labels ?? {});
  return {
    ...labelsFromCluster(cluster?.metadata.labels),
    ...VIRTUAL_NODE_KIND,
    [VIRTUAL_NODE_LABEL]: name,
    // With this label the host's topology spread counts the node, so operators of hosts without pods of their own write it.
    ...(cluster?.metadata.labels?.[HOSTNAME_LABEL] === nodeName ? { [HOSTNAME_LABEL]: nodeName } : {}),
    // No load balancer of the host reaches pods in the member.
    "node.kubernetes.io/exclude-from-external-load-balancers": "true",
    // Virtual nodes say nothing of the zone of the host's own nodes, and are all that the node lifecycle controller has without those.
    ...(isExcluded ? { [EXCLUDE_DISRUPTION_LABEL]: "" } : {}),
  };
}

const VIRTUAL_TAINT: Taint = { key: VIRTUAL_NODE_TAINT, effect: "NoSchedule" };

export function clusterTaints(cluster: Cluster | undefined): Taint[] {
  return (cluster?.spec.taints ?? []).map(({ key, value, effect }) => ({ key, ...defined({ value }), effect }));
}

/** Returns the node's taints if they must change. Taints of other managers stay. */
export function desiredTaints({ cluster, node }: Observed): Taint[] | undefined {
  const current = node?.spec?.taints ?? [];
  const earlier = earlierTaints(node);
  const wanted = [VIRTUAL_TAINT, ...clusterTaints(cluster)];
  const missing = wanted.filter((taint) => !current.some((other) => isSameTaint(other, taint)));
  // Key and effect identify a taint: another value replaces it.
  const replaced = ({ key, effect }: Taint): boolean =>
    missing.some((taint) => taint.key === key && taint.effect === effect);
  const kept = current.filter((taint) => {
    if (wanted.some((other) => isSameTaint(other, taint))) return true;
    return !replaced(taint) && !earlier.some((other) => isSameTaint(other, taint));
  });
  return missing.length === 0 && kept.length === current.length ? undefined : [...kept, ...missing];
}

const readTaints = structuredTextReader(writtenTaintsSchema);

function earlierTaints(node: KubeNode | undefined): readonly Taint[] {
  const text = node?.metadata?.annotations?.[NODE_TAINTS_ANNOTATION] ?? "[]";
  const parsed = readTaints(text);
  return parsed.ok ? parsed.value : [];
}

function isSameTaint(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect && (a.value ?? "") === (b.value ?? "");
}

/** Ready is Unknown, as for a lost kubelet, while the member's API server does not answer. If most are lost, it stays True. */
export function desiredStatus(
  { name, facts, endpoint, nodePods }: Observed,
  node: KubeNode | undefined,
  wall: number,
): NodeStatusParts {
  const at = timestamp(wall);
  const ready = facts.reachable
    ? {
        status: "True",
        reason: facts.slow === undefined ? "MemberReady" : "MemberSlow",
        message: answersOf(name, facts),
      }
    : facts.spared === undefined
      ? {
          status: "Unknown",
          reason: facts.notMember ?? "MemberUnreachable",
          message: facts.message ?? "the member does not answer",
        }
      : { status: "True", reason: "MostMembersUnreachable", message: facts.spared };
  const condition = { type: "Ready", ...ready, lastHeartbeatTime: at };
  // A member that is lost, or whose nodes cannot be read, keeps its last figures.
  const isKnown = facts.nodesRead || node === undefined;
  const { version } = facts;
  return {
    conditions: [withTransitionTime(condition, node?.status?.conditions, at)],
    ...((facts.reachable && facts.nodesRead) || node === undefined
      ? { capacity: formatAmounts(facts.capacity), allocatable: formatAmounts(allocatable(facts, nodePods)) }
      : {}),
    ...(version === undefined ? {} : { nodeInfo: nodeInfo(version) }),
    ...(version === undefined || !isKnown ? {} : { declaredFeatures: declaredFeatures(facts, endpoint !== undefined) }),
    ...endpointStatus(endpoint),
  };
}

function answersOf(name: string, { slow }: NodeFacts): string {
  const answers = `the API server of Cluster ${name} answers`;
  return slow === undefined ? answers : `${answers}, but ${slow}`;
}

/** Returns where the node's kubelet API is served. Empty while it is not. */
export function endpointStatus(endpoint: KubeletEndpoint | undefined): NodeStatus {
  if (endpoint === undefined) return {};
  return { addresses: addressesOf(endpoint), daemonEndpoints: { kubeletEndpoint: { Port: endpoint.port } } };
}

/** Returns why a node that is not Legation's stands in the way of a Cluster's. */
export function takenBy({ spec }: KubeNode, cluster: string): string {
  return (
    `a node of that name is there which is not Legation's (spec.providerID: "${spec?.providerID ?? ""}"): delete Cluster ` +
    `${cluster} and join the member under another name, or delete the node if it is of no use`
  );
}

/** The API server defaults missing resources to the capacity. `pods` is 0: NodeResourcesFit refuses each pod. */
function allocatable(facts: NodeFacts, nodePods: NodePods): Record<string, number> {
  const none = Object.fromEntries(Object.keys(facts.capacity).map((name) => [name, 0]));
  return { ...none, ...facts.allocatable, ...(nodePods === "none" ? { pods: 0 } : {}) };
}

// With this feature the host's API server passes WebSockets through. It would translate them to SPDY otherwise, in which a command
// that is cut off looks like one that succeeded.
const WEB_SOCKETS = "ExtendWebSocketsToKubelet";

/** Returns the declared features, sorted as the API requires. The host permits changes of pods by them. */
function declaredFeatures({ features, version }: NodeFacts, served: boolean): string[] {
  const own = served && servesWebSockets(version) ? [WEB_SOCKETS] : [];
  return [...features.filter((feature) => feature !== WEB_SOCKETS), ...own].sort();
}

/** API servers from 1.31 on do. */
function servesWebSockets(version = ""): boolean {
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? [];
  return Number(major) > 1 || Number(minor) >= 31;
}

/** The API requires every field: those without a meaning for a whole cluster are empty. */
function nodeInfo(version: string): NodeSystemInfo {
  return {
    architecture: "",
    bootID: "",
    containerRuntimeVersion: "legation://",
    kernelVersion: "",
    kubeProxyVersion: "",
    kubeletVersion: version,
    machineID: "",
    operatingSystem: "linux",
    osImage: "Kubernetes cluster",
    systemUUID: "",
  };
}

/** Returns the node's addresses. API servers try all types, Hostname first by default, so each must lead here. */
function addressesOf({ address, addressType = "InternalIP" }: KubeletEndpoint): NonNullable<NodeStatus["addresses"]> {
  return (isAddress(address) ? [addressType] : ["InternalDNS", "Hostname"]).map((type) => ({ type, address }));
}

function isAddress(text: string): boolean {
  return /^[\d.]+$/.test(text) || text.includes(":");
}
