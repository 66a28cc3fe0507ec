import { HOST_LABEL, LEADERLESS_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { ageOf, amountText } from "../../api/wording.ts";
import type { HostStatus, MemberStatus } from "../explain/host.ts";
import { hiddenText } from "../shared/hidden.ts";
import { some, table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { queuesText } from "./queues-text.ts";

// The least important first: capacities count most where pods wait.
const OPTIONAL = ["AGE", "VERSION", "NODES", "REACHED", "MEMORY FREE/ALL", "CPU FREE/ALL", "PODS RUN/ALL"];

export function membersText(
  { clusters, waiting, queues = [], hidden }: HostStatus,
  now: number,
  terminal: Terminal,
): string {
  if (clusters.length === 0) {
    return ["no member cluster has joined: see `legation join --help`", ...waitingLine(waiting)].join("\n");
  }
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
    `${amountText("cpu", cluster.cpu.free)}/${amountText("cpu", cluster.cpu.allocatable)}`,
    `${amountText("memory", cluster.memory.free)}/${amountText("memory", cluster.memory.allocatable)}`,
    `${cluster.pods.running}/${cluster.pods.unfinished}`,
    ageOf(cluster.created, now) ?? "-",
    ...(reasons ? [cluster.reason ?? ""] : []),
  ]);
  return [
    table(reasons ? [...header, "REASON"] : header, rows, terminal.width, OPTIONAL),
    ...waitingLine(waiting),
    ...accessLine(clusters),
    ...heldLines(clusters),
    ...queuesText(queues, now, terminal),
    ...hiddenText(hidden, terminal),
  ].join("\n");
}

/** Returns which members users of the host reach, and by which names of users and groups. */
function accessLine(clusters: readonly MemberStatus[]): string[] {
  const open = clusters.flatMap(({ name, access }) =>
    access === undefined ? [] : [`${name} (as ${access.prefix}USER)`],
  );
  return open.length === 0 ? [] : [`open to users by \`legation kubeconfig NAME\`: ${some(open)}`];
}

/** Returns `directly`, or `agent 0.1.0, 5m`: its version, and since when it is connected. */
function reachedText({ connection, agent, ready }: MemberStatus, now: number): string {
  if (connection === undefined) return "-";
  if (connection === "Direct") return "directly";
  if (agent === undefined) return "agent";
  const since = ready === "True" ? `, ${ageOf(agent.connectedSince, now)}` : "";
  return `agent ${agent.version ?? "?"}${since}`;
}

/** Returns how to inspect and end delegates that the restored host does not know. */
function heldLines(clusters: readonly MemberStatus[]): string[] {
  const holding = clusters.filter(({ held = 0 }) => held > 0);
  if (holding.length === 0) return [];
  const counts = holding.map(({ name, held = 0 }) => `${held} in ${name}`).join(", ");
  return [
    `pods that run though this cluster does not know them: ${counts}`,
    "  it was restored from a backup that is older than they are. See what runs for it in a member:",
    `    kubectl --context MEMBER get pods -A -l ${HOST_LABEL}=$(kubectl get namespace kube-system -o jsonpath={.metadata.uid})`,
    "  let them end, delete there what you do not want, or let all of them go:",
    `    kubectl -n ${SYSTEM_NAMESPACE} annotate lease legation-controller ${LEADERLESS_ANNOTATION}-`,
    `    kubectl -n ${SYSTEM_NAMESPACE} rollout restart deployment legation-controller`,
  ];
}

function waitingLine({ unplaced, gated }: HostStatus["waiting"]): string[] {
  const parts = [
    ...(unplaced === 0 ? [] : [`${unplaced} not placed yet`]),
    ...(gated === 0 ? [] : [`${gated} held back by scheduling gates`]),
  ];
  return parts.length === 0 ? [] : [`pods without a member: ${parts.join(", ")} (see \`legation status pod NAME\`)`];
}
