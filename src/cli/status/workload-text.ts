import { reasonLine, reasonsOf } from "../explain/reasons.ts";
import type { PendingPods, WorkloadMember, WorkloadStatus } from "../explain/workload.ts";
import { counted, table, waitingText } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { troubleText } from "./trouble-text.ts";

/** Formats a workload's status for people. */
export function workloadText(status: WorkloadStatus, terminal: Terminal): string {
  const { kind, namespace, name, replicas, pods, rebalance, clusters, onHost, notDelegated, pending, troubles, next } =
    status;
  const divided = rebalance !== undefined;
  const readyCount = clusters.reduce((sum, member) => sum + member.ready, 0) + status.readyOnHost;
  const header = ["CLUSTER", ...(divided ? ["WANTED"] : []), "HAS", "READY", "PODS", "WHY NOT THE NEXT"];
  const rows = clusters.map((member) => memberRow(member, divided, terminal));
  const lines = [
    `${kind} ${namespace}/${name}: ${replicas} wanted, ${pods} there, ${readyCount} ready`,
    table(header, rows, terminal.width),
  ];
  if (rebalance === false)
    lines.push("rebalance is off: pods that run stay where they are; new ones keep the division");
  const overflowing = onHost - notDelegated;
  if (overflowing > 0) {
    lines.push(`${counted(overflowing)} in overflow mode ${overflowing === 1 ? "is" : "are"} this cluster's so far`);
  }
  if (notDelegated > 0) {
    const why = status.whyOnHost === undefined ? "" : `: ${status.whyOnHost}`;
    lines.push(`${counted(notDelegated)} ${notDelegated === 1 ? "is" : "are"} not delegated${why}`);
  }
  if (next !== undefined) lines.push(`one more pod would go to ${next}`);
  return [
    ...lines,
    ...troubles.slice(0, MOST_TROUBLES).map((trouble) => troubleText(trouble, terminal)),
    ...(troubles.length > MOST_TROUBLES ? [`… and ${troubles.length - MOST_TROUBLES} more troubles (-o json)`] : []),
    ...pending.map((those) => pendingText(those, terminal)),
  ].join("\n");
}

// Fits on one screen.
const MOST_TROUBLES = 8;

function memberRow(member: WorkloadMember, divided: boolean, terminal: Terminal): string[] {
  const { cluster, wanted = 0, overflow, has, ready, phases, whyNot = "" } = member;
  const part = overflow === undefined ? String(wanted) : `${wanted} (+${overflow} without room)`;
  const colour = wanted === has ? "green" : "yellow";
  return [
    cluster,
    ...(divided ? [terminal.paint(colour, part)] : []),
    String(has),
    String(ready),
    Object.entries(phases)
      .map(([phase, count]) => `${count} ${phase}`)
      .join(", ") || "-",
    whyNot,
  ];
}

function pendingText({ pods, reason, message }: PendingPods, terminal: Terminal): string {
  return [
    `${terminal.paint("red", waitingText(pods))}: ${reason}`,
    ...reasonsOf(message).map((one) => `  ${reasonLine(one)}`),
  ].join("\n");
}
