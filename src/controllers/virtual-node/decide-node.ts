import type { Cluster } from "../../api/cluster.ts";
import { writtenTaintsSchema } from "../../api/cluster-policy.ts";
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
import type { MemberFacts, NodePods, Observed } from "./model.ts";

/** The parts of a node's status that Legation writes. */
export type NodeStatusParts = NodeStatus & { readonly conditions: NodeCondition[] };

/**
 * The virtual node of a member that has none. One that was deleted comes back cordoned and tainted as it was: it stands for a
 * member, which is what it was before, and evictions for its taints go on.
 */
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

/** Labels the node has from its Cluster, and those that say what it is. */
export function desiredLabels({ name, cluster, node, hostNodes }: Observed): Record<string, string> {
  const nodeName = virtualNodeName(name);
  const isExcluded = hostNodes ?? EXCLUDE_DISRUPTION_LABEL in (node?.metadata.labels ?? {});
  return {
    ...labelsFromCluster(cluster?.metadata.labels),
    ...VIRTUAL_NODE_KIND,
    [VIRTUAL_NODE_LABEL]: name,
    // The host's topology spread counts the node from then on, so the operator writes it, for a host without pods of its own.
    ...(cluster?.metadata.labels?.[HOSTNAME_LABEL] === nodeName ? { [HOSTNAME_LABEL]: nodeName } : {}),
    // Its pods' addresses are the member's: no load balancer of the host reaches them.
    "node.kubernetes.io/exclude-from-external-load-balancers": "true",
    // Members say nothing of the host's own nodes. Without such nodes they are all that the node lifecycle controller can go by.
    ...(isExcluded ? { [EXCLUDE_DISRUPTION_LABEL]: "" } : {}),
  };
}

const VIRTUAL_TAINT: Taint = { key: VIRTUAL_NODE_TAINT, effect: "NoSchedule" };

/** The taints that the operator wrote on a Cluster. */
export function clusterTaints(cluster: Cluster | undefined): Taint[] {
  return (cluster?.spec.taints ?? []).map(({ key, value, effect }) => ({
    key,
    ...(value === undefined ? {} : { value }),
    effect,
  }));
}

/** The node's taints as they must be; undefined when they are. Those that others put there stay. */
export function desiredTaints({ cluster, node }: Observed): Taint[] | undefined {
  const current = node?.spec?.taints ?? [];
  const earlier = earlierTaints(node);
  const wanted = [VIRTUAL_TAINT, ...clusterTaints(cluster)];
  const missing = wanted.filter((taint) => !current.some((other) => isSameTaint(other, taint)));
  // A taint is known by key and effect: one with another value takes its place.
  const replaced = ({ key, effect }: Taint): boolean =>
    missing.some((taint) => taint.key === key && taint.effect === effect);
  const kept = current.filter((taint) => {
    if (wanted.some((other) => isSameTaint(other, taint))) return true;
    return !replaced(taint) && !earlier.some((other) => isSameTaint(other, taint));
  });
  return missing.length === 0 && kept.length === current.length ? undefined : [...kept, ...missing];
}

const readTaints = structuredTextReader(writtenTaintsSchema);

/** What the node has from its Cluster, as was written down when it got them. */
function earlierTaints(node: KubeNode | undefined): readonly Taint[] {
  const text = node?.metadata?.annotations?.[NODE_TAINTS_ANNOTATION] ?? "[]";
  const parsed = readTaints(text);
  return parsed.ok ? parsed.value : [];
}

function isSameTaint(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect && (a.value ?? "") === (b.value ?? "");
}

/**
 * The node's status. Ready is Unknown, as of a lost kubelet, when the member's API server does not answer; unless most do
 * not, since the node lifecycle controller would then evict what probably runs.
 */
export function desiredStatus(
  { name, facts, endpoint, nodePods }: Observed,
  node: KubeNode | undefined,
  wall: number,
): NodeStatusParts {
  const at = timestamp(wall);
  const ready = facts.reachable
    ? { status: "True", reason: "MemberReady", message: `the API server of Cluster ${name} answers` }
    : facts.spared === undefined
      ? {
          status: "Unknown",
          reason: facts.notMember ?? "MemberUnreachable",
          message: facts.message ?? "the member does not answer",
        }
      : { status: "True", reason: "MostMembersUnreachable", message: facts.spared };
  const before = node?.status?.conditions?.find(({ type }) => type === "Ready");
  const since = before?.status === ready.status ? before.lastTransitionTime : undefined;
  const condition = { type: "Ready", ...ready, lastHeartbeatTime: at, lastTransitionTime: since ?? at };
  // What a lost member has is what it had. So has one whose nodes cannot be read.
  const isKnown = facts.nodesRead || node === undefined;
  const { version } = facts;
  return {
    conditions: [condition],
    ...((facts.reachable && facts.nodesRead) || node === undefined
      ? { capacity: formatAmounts(facts.capacity), allocatable: formatAmounts(allocatable(facts, nodePods)) }
      : {}),
    ...(version === undefined ? {} : { nodeInfo: nodeInfo(version) }),
    ...(version === undefined || !isKnown ? {} : { declaredFeatures: declaredFeatures(facts, endpoint !== undefined) }),
    ...(endpoint === undefined
      ? {}
      : {
          addresses: addressesOf(endpoint),
          daemonEndpoints: { kubeletEndpoint: { Port: endpoint.port } },
        }),
  };
}

/**
 * Lists every resource of the capacity, since the API server takes the capacity for what is missing. `pods` is 0 for the host's schedulers: the
 * filter NodeResourcesFit then refuses each pod, and finds that no preemption helps.
 */
function allocatable(facts: MemberFacts, nodePods: NodePods): Record<string, number> {
  const none = Object.fromEntries(Object.keys(facts.capacity).map((name) => [name, 0]));
  return { ...none, ...facts.allocatable, ...(nodePods === "none" ? { pods: 0 } : {}) };
}

// The host's API server then passes WebSockets on as they are. Otherwise it makes SPDY of them, by which a command that is
// cut off looks like one that has ended well.
const WEB_SOCKETS = "ExtendWebSocketsToKubelet";

/** In order, as the API wants them. The host lets pods change by what their node declares. */
function declaredFeatures({ features, version }: MemberFacts, served: boolean): string[] {
  const own = served && servesWebSockets(version) ? [WEB_SOCKETS] : [];
  return [...features.filter((feature) => feature !== WEB_SOCKETS), ...own].sort();
}

/** True when the member's API server takes exec, attach and port-forward by WebSocket in the newest protocols: 1.31. */
function servesWebSockets(version = ""): boolean {
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? [];
  return Number(major) > 1 || Number(minor) >= 31;
}

/** The API requires every field of nodeInfo; what has no meaning for a whole cluster is empty. */
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

/**
 * API servers try the types of addresses in an order of their own, with Hostname first unless told otherwise: nothing is
 * published that does not lead here.
 */
function addressesOf({ address, addressType = "InternalIP" }: KubeletEndpoint): NonNullable<NodeStatus["addresses"]> {
  return (isAddress(address) ? [addressType] : ["InternalDNS", "Hostname"]).map((type) => ({ type, address }));
}

function isAddress(text: string): boolean {
  return /^[\d.]+$/.test(text) || text.includes(":");
}
