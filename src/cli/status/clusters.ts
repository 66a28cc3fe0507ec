import {
  type AccessSpec,
  type Cluster,
  type ClusterStatus as ClusterStatusFields,
  RELEASED_CONDITION,
  SLOW,
} from "../../api/cluster.ts";
import { HOST_LABEL, LEADERLESS_ANNOTATION, SYSTEM_NAMESPACE, virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { addAmounts, parseAmounts } from "../../api/quantity.ts";
import { clusters as resources } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes } from "../../kube/resources.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { podRequests } from "../../placement/requests.ts";
import { isBound, isGated } from "../../pods/pod-state.ts";
import { age, type Outcome, table } from "../shared/output.ts";
import { asViewer, listClusters, listProxies, listVirtualNodes, unfinished } from "../shared/reading.ts";
import type { Session } from "../shared/session.ts";
import type { Terminal } from "../shared/terminal.ts";
import type { HostState } from "../simulation/host-state.ts";

/** A resource of a member in cores or bytes: allocatable, and free of this host's pods. */
export interface Share {
  readonly free: number;
  readonly allocatable: number;
}

/** The status of a member. */
export interface ClusterStatus {
  readonly name: string;
  /** Status of the Ready condition of the Cluster, or of its node if that is not Ready. Unknown without a report. */
  readonly ready: string;
  /** Why the member is not ready, or takes no pods. */
  readonly reason?: string | undefined;
  /** How the controller reaches it. Undefined without a report. */
  readonly connection: ClusterStatusFields["connection"];
  /** The agent through which it is reached, as it last connected. */
  readonly agent: ClusterStatusFields["agent"];
  /** How users of the host reach it through the host. Undefined: they do not. */
  readonly access: AccessSpec | undefined;
  readonly version: string | undefined;
  readonly nodes: number | undefined;
  readonly cpu: Share;
  readonly memory: Share;
  readonly pods: { readonly running: number; readonly unfinished: number };
  /** Number of kept delegates. Undefined if there are none. */
  readonly held: number | undefined;
  readonly created: string | undefined;
}

/** The host's objects of members. */
export type Members = Pick<HostState, "clusters" | "nodes">;

/** The status of all members, and of the proxies without a member. */
export interface HostStatus {
  readonly clusters: readonly ClusterStatus[];
  readonly waiting: { readonly unplaced: number; readonly gated: number };
}

/** Reads the status of all members. Rejects with `Failure` where Legation is not installed or the account may not read them. */
export async function readClusters(host: ClusterClient, { signal, terminal }: Session): Promise<Outcome> {
  const [joined, virtualNodes, proxies] = await asViewer(
    Promise.all([listClusters(host, signal), listVirtualNodes(host, signal), listProxies(host, { signal })]),
  );
  const status = hostStatus({ clusters: joined, nodes: virtualNodes, proxies });
  return { document: status, text: statusTable(status, Date.now(), terminal) };
}

/** Reads members' Clusters and virtual nodes, as far as they are there. Rejects with KubeError. */
export async function findMembers(
  host: ClusterClient,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Members> {
  const [found, virtual] = await Promise.all([
    Promise.all(names.map((name) => host.find(resources, { name }, { signal }))),
    Promise.all(names.map((name) => host.find(nodes, { name: virtualNodeName(name) }, { signal }))),
  ]);
  return { clusters: found.flatMap((cluster) => cluster ?? []), nodes: virtual.flatMap((node) => node ?? []) };
}

/** Sums up what members have and what proxies use of it. */
export function hostStatus({
  clusters,
  nodes: virtualNodes,
  proxies,
}: Members & Pick<HostState, "proxies">): HostStatus {
  const alive = unfinished(proxies);
  const byNode = Map.groupBy(alive, (proxy) => proxy.spec?.nodeName ?? "");
  const byName = new Map(virtualNodes.map((node) => [node.metadata.name, node]));
  const unbound = alive.filter((proxy) => !isBound(proxy));
  const gated = unbound.filter(isGated).length;
  return {
    clusters: clusters
      .map((cluster) => {
        const node = virtualNodeName(cluster.metadata.name);
        return clusterStatus(cluster, byNode.get(node) ?? [], byName.get(node));
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    waiting: { unplaced: unbound.length - gated, gated },
  };
}

function clusterStatus(
  cluster: Stored<Cluster>,
  proxies: readonly Stored<Pod>[],
  node: Stored<KubeNode> | undefined,
): ClusterStatus {
  const { metadata, spec, status } = cluster;
  const readiness = readinessOf(cluster, node);
  const used: Record<string, number> = {};
  for (const proxy of proxies) addAmounts(used, podRequests(proxy));
  const allocatable = parseAmounts(status?.allocatable);
  const share = (resource: string): Share => ({
    // Pods stay on nodes that are not Ready any more, and that count no more.
    free: Math.max(0, (allocatable[resource] ?? 0) - (used[resource] ?? 0)),
    allocatable: allocatable[resource] ?? 0,
  });
  return {
    name: metadata.name,
    connection: status?.connection,
    access: spec.access,
    agent: status?.agent,
    ready: readiness.ready,
    reason: removalOf(cluster) ?? readiness.reason,
    version: status?.version,
    nodes: status?.nodes,
    cpu: share("cpu"),
    memory: share("memory"),
    pods: {
      running: proxies.filter((proxy) => proxy.status?.phase === "Running").length,
      unfinished: proxies.length,
    },
    held: status?.heldDelegates || undefined,
    created: metadata.creationTimestamp,
  };
}

const UNHEARD = "does `legation controller` run?";

/** Returns why a Cluster that is being deleted is still there. Undefined if it is not being deleted. */
export function removalOf({ metadata, status }: Stored<Cluster>): string | undefined {
  if (metadata.deletionTimestamp === undefined) return undefined;
  const kept = status?.conditions?.find(({ type }) => type === RELEASED_CONDITION);
  return kept === undefined ? "is being removed" : `is being removed: ${kept.message}`;
}

/** Returns a member's readiness by its Cluster and its node. */
export function readinessOf(
  { status }: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
): Pick<ClusterStatus, "ready" | "reason"> {
  const said = status?.conditions?.find(({ type }) => type === "Ready");
  if (said === undefined) return { ready: "Unknown", reason: `no controller has reported on it: ${UNHEARD}` };
  const { status: ready, message } = said;
  const slow = said.reason === SLOW ? { reason: message } : {};
  if (ready !== "True") return { ready, reason: message };
  // The controller may be gone; then Kubernetes marks the node, whose Lease expires.
  if (node !== undefined && !isNodeReady(node)) {
    const reason = `its node ${node.metadata.name} is not Ready, so what is shown may be old: ${UNHEARD}`;
    return { ready: node.status?.conditions?.find(({ type }) => type === "Ready")?.status ?? "Unknown", reason };
  }
  return { ready, ...(node?.spec?.unschedulable === true ? { reason: "cordoned: takes no new pods" } : slow) };
}

/** Returns the Cluster of a member with its readiness. Undefined: it was removed. */
export function memberAmong(
  { clusters, nodes: virtual }: Members,
  name: string,
): (ReturnType<typeof readinessOf> & { readonly cluster: Stored<Cluster> }) | undefined {
  const cluster = clusters.find(({ metadata }) => metadata.name === name);
  const node = virtual.find(({ metadata }) => metadata.name === virtualNodeName(name));
  return cluster && { cluster, ...readinessOf(cluster, node) };
}

/** Formats the status for people. */
export function statusTable({ clusters, waiting }: HostStatus, now: number, terminal: Terminal): string {
  if (clusters.length === 0) return `no member cluster has joined: see \`legation join --help\`${waitingLine(waiting)}`;
  const header = [
    "NAME",
    "READY",
    "REACHED",
    "VERSION",
    "NODES",
    "CPU FREE/ALL",
    "MEMORY FREE/ALL",
    "PODS RUN/ALL",
    "AGE",
  ];
  const reasons = clusters.some(({ reason }) => reason !== undefined);
  const rows = clusters.map((cluster) => [
    cluster.name,
    terminal.paint(cluster.ready === "True" ? "green" : "red", cluster.ready),
    reachedText(cluster, now),
    cluster.version ?? "-",
    String(cluster.nodes ?? "-"),
    `${rounded(cluster.cpu.free)}/${rounded(cluster.cpu.allocatable)}`,
    `${bytes(cluster.memory.free)}/${bytes(cluster.memory.allocatable)}`,
    `${cluster.pods.running}/${cluster.pods.unfinished}`,
    cluster.created === undefined ? "-" : age(now - Date.parse(cluster.created)),
    ...(reasons ? [cluster.reason ?? ""] : []),
  ]);
  return (
    table(reasons ? [...header, "REASON"] : header, rows, terminal.width) +
    waitingLine(waiting) +
    accessLine(clusters) +
    heldLines(clusters)
  );
}

/** Returns which members users of the host reach, and by which names of users and groups. */
function accessLine(clusters: readonly ClusterStatus[]): string {
  const open = clusters.flatMap(({ name, access }) =>
    access === undefined ? [] : [`${name} (as ${access.prefix}USER)`],
  );
  return open.length === 0 ? "" : `\nopen to users by \`legation kubeconfig NAME\`: ${open.join(", ")}`;
}

/** Returns `directly`, or `agent 0.1.0, 5m`: its version, and since when it is connected. */
function reachedText({ connection, agent, ready }: ClusterStatus, now: number): string {
  if (connection === undefined) return "-";
  if (connection === "Direct") return "directly";
  if (agent === undefined) return "agent";
  const since = ready === "True" ? `, ${age(now - Date.parse(agent.connectedSince))}` : "";
  return `agent ${agent.version ?? "?"}${since}`;
}

/** Returns how to inspect and end delegates that the restored host does not know. */
function heldLines(clusters: readonly ClusterStatus[]): string {
  const holding = clusters.filter(({ held = 0 }) => held > 0);
  if (holding.length === 0) return "";
  const counts = holding.map(({ name, held = 0 }) => `${held} in ${name}`).join(", ");
  return [
    `\npods that run though this cluster does not know them: ${counts}`,
    "  it was restored from a backup that is older than they are. See what runs for it in a member:",
    `    kubectl --context MEMBER get pods -A -l ${HOST_LABEL}=$(kubectl get namespace kube-system -o jsonpath={.metadata.uid})`,
    "  let them end, delete there what you do not want, or let all of them go:",
    `    kubectl -n ${SYSTEM_NAMESPACE} annotate lease legation-controller ${LEADERLESS_ANNOTATION}-`,
    `    kubectl -n ${SYSTEM_NAMESPACE} rollout restart deployment legation-controller`,
  ].join("\n");
}

function waitingLine({ unplaced, gated }: HostStatus["waiting"]): string {
  const parts = [
    ...(unplaced === 0 ? [] : [`${unplaced} not placed yet`]),
    ...(gated === 0 ? [] : [`${gated} held back by scheduling gates`]),
  ];
  return parts.length === 0 ? "" : `\npods without a member: ${parts.join(", ")} (see \`legation status pod NAME\`)`;
}

function rounded(value: number): string {
  return String(Math.round(value * 10) / 10);
}

const BYTE_UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

function bytes(value: number): string {
  const power = Math.floor(Math.log2(Math.max(1, Math.abs(value))) / 10);
  const unit = Math.min(power, BYTE_UNITS.length - 1);
  return `${rounded(value / 1024 ** unit)}${BYTE_UNITS[unit]}`;
}
