import { HOST_LABEL, LEADERLESS_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { HostStatus, MemberStatus } from "../explain/members.ts";
import { age, table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

// The least important first: capacities count most where pods wait.
const OPTIONAL = ["AGE", "VERSION", "NODES", "REACHED", "MEMORY FREE/ALL", "CPU FREE/ALL", "PODS RUN/ALL"];

/** Formats the status for people. */
export function membersText({ clusters, waiting }: HostStatus, now: number, terminal: Terminal): string {
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
    table(reasons ? [...header, "REASON"] : header, rows, terminal.width, OPTIONAL) +
    waitingLine(waiting) +
    accessLine(clusters) +
    heldLines(clusters)
  );
}

/** Returns which members users of the host reach, and by which names of users and groups. */
function accessLine(clusters: readonly MemberStatus[]): string {
  const open = clusters.flatMap(({ name, access }) =>
    access === undefined ? [] : [`${name} (as ${access.prefix}USER)`],
  );
  return open.length === 0 ? "" : `\nopen to users by \`legation kubeconfig NAME\`: ${open.join(", ")}`;
}

/** Returns `directly`, or `agent 0.1.0, 5m`: its version, and since when it is connected. */
function reachedText({ connection, agent, ready }: MemberStatus, now: number): string {
  if (connection === undefined) return "-";
  if (connection === "Direct") return "directly";
  if (agent === undefined) return "agent";
  const since = ready === "True" ? `, ${age(now - Date.parse(agent.connectedSince))}` : "";
  return `agent ${agent.version ?? "?"}${since}`;
}

/** Returns how to inspect and end delegates that the restored host does not know. */
function heldLines(clusters: readonly MemberStatus[]): string {
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

/** Formats an amount of a resource, in cores or bytes where it is one of these. */
export function amountText(resource: string, amount: number): string {
  return resource === "memory" ? bytes(amount) : rounded(amount);
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
