import { type Cluster, RELEASED_CONDITION } from "../../api/cluster.ts";
import { HOST_LABEL, LEADERLESS_ANNOTATION, SYSTEM_NAMESPACE, virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { addAmounts, parseAmounts } from "../../api/quantity.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { podRequests } from "../../placement/requests.ts";
import { isBound, isGated, isTerminal } from "../../pods/phase.ts";
import type { Failing } from "../../runtime/reflector.ts";
import { age, table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

/** The host's objects that the status of all members needs. */
export interface Snapshot {
  readonly clusters: readonly Stored<Cluster>[];
  /** Virtual nodes. */
  readonly nodes: readonly Stored<KubeNode>[];
  readonly proxies: readonly Stored<Pod>[];
  /** The watch's current failure, if any. */
  readonly failing?: Failing;
}

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
  readonly reason?: string;
  readonly version?: string;
  readonly nodes?: number;
  readonly cpu: Share;
  readonly memory: Share;
  readonly pods: { readonly running: number; readonly unfinished: number };
  /** Number of held delegates. Absent if there are none. */
  readonly held?: number;
  readonly created?: string;
}

/** The status of all members, and of the proxies without a member. */
export interface HostStatus {
  readonly clusters: readonly ClusterStatus[];
  readonly waiting: { readonly unplaced: number; readonly gated: number };
  /** Since when the host cannot be read, and why. The rest is as of then. */
  readonly failing?: { readonly since: string; readonly reason: string };
}

/** Counts and sums one snapshot. */
export function hostStatus({ clusters, nodes, proxies, failing }: Snapshot): HostStatus {
  const alive = proxies.filter((proxy) => !isTerminal(proxy));
  const byNode = Map.groupBy(alive, (proxy) => proxy.spec?.nodeName ?? "");
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
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
    ...(failing === undefined
      ? {}
      : { failing: { since: new Date(failing.since).toISOString(), reason: failing.reason } }),
  };
}

function clusterStatus(
  cluster: Stored<Cluster>,
  proxies: readonly Stored<Pod>[],
  node: Stored<KubeNode> | undefined,
): ClusterStatus {
  const { metadata, status } = cluster;
  const used: Record<string, number> = {};
  for (const proxy of proxies) addAmounts(used, podRequests(proxy));
  const allocatable = parseAmounts(status?.allocatable);
  const share = (resource: string): Share => ({
    free: (allocatable[resource] ?? 0) - (used[resource] ?? 0),
    allocatable: allocatable[resource] ?? 0,
  });
  return {
    name: metadata.name,
    ...readinessOf(cluster, node),
    ...(status?.version === undefined ? {} : { version: status.version }),
    ...(status?.nodes === undefined ? {} : { nodes: status.nodes }),
    cpu: share("cpu"),
    memory: share("memory"),
    pods: {
      running: proxies.filter((proxy) => proxy.status?.phase === "Running").length,
      unfinished: proxies.length,
    },
    ...((status?.heldDelegates ?? 0) === 0 ? {} : { held: status?.heldDelegates ?? 0 }),
    ...(metadata.creationTimestamp === undefined ? {} : { created: metadata.creationTimestamp }),
  };
}

const UNHEARD = "does `legation controller` run?";

/** Returns a member's readiness by its Cluster and its node. */
export function readinessOf(
  { metadata, status }: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
): Pick<ClusterStatus, "ready" | "reason"> {
  const said = status?.conditions?.find(({ type }) => type === "Ready");
  const ready = said?.status ?? "Unknown";
  if (metadata.deletionTimestamp !== undefined) {
    const kept = status?.conditions?.find(({ type }) => type === RELEASED_CONDITION);
    return { ready, reason: kept === undefined ? "is being removed" : `is being removed: ${kept.message}` };
  }
  if (said === undefined) return { ready, reason: `no controller has reported on it: ${UNHEARD}` };
  if (ready !== "True") return { ready, reason: said.message };
  // The controller may be gone; then Kubernetes marks the node, whose Lease expires.
  if (node !== undefined && !isNodeReady(node)) {
    const reason = `its node ${node.metadata.name} is not Ready, so what is shown may be old: ${UNHEARD}`;
    return { ready: nodeReadiness(node), reason };
  }
  return node?.spec?.unschedulable === true ? { ready, reason: "cordoned: takes no new pods" } : { ready };
}

function nodeReadiness({ status }: KubeNode): string {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status ?? "Unknown";
}

/** Formats the status for people. */
export function statusTable(status: HostStatus, now: number, terminal: Terminal): string {
  return membersTable(status, now, terminal) + failingLine(status, terminal);
}

function failingLine({ failing }: HostStatus, terminal: Terminal): string {
  if (failing === undefined) return "";
  const line = `not read since ${failing.since}, and shown as it was then: ${failing.reason}`;
  return `\n${terminal.paint("red", line)}`;
}

function membersTable({ clusters, waiting }: HostStatus, now: number, terminal: Terminal): string {
  if (clusters.length === 0) return `no member cluster has joined: see \`legation join --help\`${waitingLine(waiting)}`;
  const header = [
    "NAME",
    "READY",
    "VERSION",
    "NODES",
    "CPU FREE/ALL",
    "MEMORY FREE/ALL",
    "PODS RUN/ALL",
    "AGE",
    "REASON",
  ];
  const rows = clusters.map((cluster) => [
    cluster.name,
    terminal.paint(cluster.ready === "True" ? "green" : "red", cluster.ready),
    cluster.version ?? "-",
    String(cluster.nodes ?? "-"),
    `${cores(cluster.cpu.free)}/${cores(cluster.cpu.allocatable)}`,
    `${bytes(cluster.memory.free)}/${bytes(cluster.memory.allocatable)}`,
    `${cluster.pods.running}/${cluster.pods.unfinished}`,
    cluster.created === undefined ? "-" : age(now - Date.parse(cluster.created)),
    cluster.reason ?? "",
  ]);
  const reasons = clusters.some(({ reason }) => reason !== undefined);
  return table(reasons ? header : header.slice(0, -1), rows) + waitingLine(waiting) + heldLines(clusters);
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

function cores(value: number): string {
  return String(Math.round(value * 10) / 10);
}

const BYTE_UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

function bytes(value: number): string {
  let rest = value;
  let unit = 0;
  while (Math.abs(rest) >= 1024 && unit < BYTE_UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${Math.round(rest * 10) / 10}${BYTE_UNITS[unit]}`;
}
