import type { Cluster } from "../../api/cluster.ts";
import { MEMBER_NODE_ANNOTATION, virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { type Amounts, addAmounts, parseAmounts } from "../../api/quantity.ts";
import { podRequests } from "../../placement/requests.ts";
import { controllerOf, isBound, isDeleting, isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { readinessOf, removalOf } from "../explain/members.ts";
import { kubectlStatus } from "../explain/pod-status.ts";
import { problemOf } from "../explain/trouble.ts";
import { whyWithoutMember } from "../explain/waiting.ts";
import type { MemberRow, PodRow, ResourceUse } from "./model.ts";

/** Returns a proxy's row of the table. */
export function podRow(pod: Stored<Pod>): PodRow {
  const { uid, namespace = "", name, creationTimestamp = "", annotations = {} } = pod.metadata;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const containers = pod.spec?.containers ?? [];
  const status = kubectlStatus(pod);
  return {
    uid,
    namespace,
    name,
    status,
    state: stateOf(pod, status),
    ready: `${containerStatuses.filter(({ ready }) => ready).length}/${containers.length}`,
    restarts: [...initContainerStatuses, ...containerStatuses].reduce((sum, { restartCount }) => sum + restartCount, 0),
    member: memberOf(pod),
    node: annotations[MEMBER_NODE_ANNOTATION],
    workload: workloadOf(pod),
    created: creationTimestamp,
    why: whyOf(pod),
  };
}

function stateOf(pod: Stored<Pod>, status: string): PodRow["state"] {
  const { phase } = pod.status ?? {};
  if (phase === "Failed") return "failed";
  if (phase === "Succeeded") return "succeeded";
  if (isDeleting(pod)) return "ending";
  if (!isBound(pod)) return "waiting";
  if (status === "Running") return "running";
  return FAILING.test(status) ? "failed" : "starting";
}

// Reasons of containers that do not start by themselves.
const FAILING = /BackOff|Err|Error|Invalid|OOMKilled|ContainerCannotRun/;

function whyOf(pod: Stored<Pod>): string | undefined {
  return whyWithoutMember(pod)?.message ?? problemOf(pod);
}

/** Returns the workload that authors know: a Deployment for the pods of its ReplicaSets. */
function workloadOf(pod: Stored<Pod>): string | undefined {
  const owner = controllerOf(pod);
  if (owner === undefined) return undefined;
  const hash = pod.metadata.labels?.["pod-template-hash"];
  const suffix = `-${hash}`;
  if (owner.kind === "ReplicaSet" && hash !== undefined && owner.name.endsWith(suffix)) {
    return `Deployment/${owner.name.slice(0, -suffix.length)}`;
  }
  return `${owner.kind}/${owner.name}`;
}

/** The parts of a pod that members' sums count. */
export interface CountedPod {
  readonly nodeName: string | undefined;
  readonly isUnfinished: boolean;
  readonly isRunning: boolean;
  readonly requests: Amounts;
}

/** Returns what members' sums count of a pod. */
export function countedPod(pod: Pod): CountedPod {
  return {
    nodeName: pod.spec?.nodeName,
    isUnfinished: !isTerminal(pod),
    isRunning: pod.status?.phase === "Running",
    requests: podRequests(pod),
  };
}

/** Returns the members' rows, in the order of their names. */
export function memberRows(
  clusters: readonly Stored<Cluster>[],
  nodes: readonly Stored<KubeNode>[],
  proxies: Iterable<CountedPod>,
): MemberRow[] {
  const byNode = countsByNode(proxies);
  const nodeOf = new Map(nodes.map((node) => [node.metadata.name, node]));
  return clusters
    .map((cluster) => {
      const node = virtualNodeName(cluster.metadata.name);
      return memberRow(cluster, nodeOf.get(node), byNode.get(node) ?? { running: 0, unfinished: 0, requests: {} });
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Sums over the unfinished pods of a virtual node. */
interface Counts {
  running: number;
  unfinished: number;
  readonly requests: Record<string, number>;
}

function countsByNode(proxies: Iterable<CountedPod>): ReadonlyMap<string, Counts> {
  const byNode = new Map<string, Counts>();
  for (const { nodeName = "", isUnfinished, isRunning, requests } of proxies) {
    if (!isUnfinished) continue;
    const counts = byNode.get(nodeName) ?? { running: 0, unfinished: 0, requests: {} };
    byNode.set(nodeName, counts);
    counts.unfinished += 1;
    if (isRunning) counts.running += 1;
    addAmounts(counts.requests, requests);
  }
  return byNode;
}

function memberRow(
  cluster: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
  { running, unfinished, requests }: Counts,
): MemberRow {
  const { metadata, spec, status = {} } = cluster;
  const { ready, reason } = readinessOf(cluster, node);
  return {
    name: metadata.name,
    ready,
    reason: removalOf(cluster) ?? reason,
    since: status.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime,
    version: status.version,
    nodes: status.nodes,
    server: status.server,
    hasAgent: spec.agent !== undefined,
    isCordoned: node?.spec?.unschedulable === true,
    labels: metadata.labels ?? {},
    taints: (spec.taints ?? []).map(({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`),
    use: useOf(cluster, requests),
    running,
    unfinished,
    created: metadata.creationTimestamp,
  };
}

// Shown first; extended resources such as nvidia.com/gpu follow.
const FIRST = ["cpu", "memory", "pods"];

function useOf({ status = {} }: Stored<Cluster>, ours: Amounts): ResourceUse[] {
  const allocatable = parseAmounts(status.allocatable);
  const others = parseAmounts(status.requestedByOthers);
  const extended = Object.keys(allocatable).filter((resource) => resource.includes("/") && allocatable[resource] !== 0);
  return [...FIRST, ...extended.sort()]
    .filter((resource) => allocatable[resource] !== undefined)
    .map((resource) => ({
      resource,
      allocatable: allocatable[resource] ?? 0,
      ours: ours[resource] ?? 0,
      others: others[resource] ?? 0,
    }));
}
