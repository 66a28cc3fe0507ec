import { ageOf, counted, countedAre } from "../../api/wording.ts";
import { pendingText, troubleText } from "../explain/text.ts";
import type { WorkloadMember, WorkloadRun, WorkloadStatus } from "../explain/workload.ts";
import { hiddenText } from "../shared/hidden.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

export function workloadText(status: WorkloadStatus, now: number, terminal: Terminal): string {
  const { kind, namespace, name, pods, rebalance, clusters, onHost, notDelegated, pending, troubles, next } = status;
  const divided = rebalance !== undefined;
  const readyCount = clusters.reduce((sum, member) => sum + member.ready, 0) + status.readyOnHost;
  const state =
    status.ended === undefined
      ? `${status.replicas} wanted, ${pods} there, ${readyCount} ready`
      : `${status.ended}, ${counted(pods)} there`;
  const header = ["CLUSTER", ...(divided ? ["WANTED"] : []), "HAS", "READY", "PODS", "WHY NOT THE NEXT"];
  const rows = clusters.map((member) => memberRow(member, divided, terminal));
  const lines = [`${kind} ${namespace}/${name}: ${state}`, table(header, rows, terminal.width, ["READY", "PODS"])];
  if (rebalance === false)
    lines.push("rebalance is off: pods that run stay where they are; new ones keep the division");
  const overflowing = onHost - notDelegated;
  if (overflowing > 0) {
    lines.push(`${countedAre(overflowing, "in overflow mode")} this cluster's so far`);
  }
  if (notDelegated > 0) {
    const why = status.whyOnHost === undefined ? "" : `: ${status.whyOnHost}`;
    lines.push(`${countedAre(notDelegated)} not delegated${why}`);
  }
  if (next !== undefined) lines.push(`one more pod would go to ${next}`);
  if (status.runs.length > 0) lines.push("", runsTable(status.runs, now, terminal));
  return [
    ...lines,
    ...troubles.slice(0, MOST_TROUBLES).map((trouble) => troubleText(trouble, terminal)),
    ...(troubles.length > MOST_TROUBLES ? [`… and ${troubles.length - MOST_TROUBLES} more troubles (-o json)`] : []),
    ...pending.map((those) => pendingText(those, terminal)),
    ...hiddenText(status.hidden, terminal),
  ].join("\n");
}

// Fits on one screen.
const MOST_TROUBLES = 8;

function runsTable(runs: readonly WorkloadRun[], now: number, terminal: Terminal): string {
  const rows = runs.map(({ name, state, succeeded, failed, clusters, created }) => [
    name,
    state,
    String(succeeded),
    String(failed),
    clusters.join(",") || "-",
    ageOf(created, now) ?? "-",
  ]);
  return table(["JOB", "STATE", "SUCCEEDED", "FAILED", "WHOLE IN", "AGE"], rows, terminal.width, [
    "AGE",
    "SUCCEEDED",
    "FAILED",
  ]);
}

/** Formats counts: `2 Running, 1 Pending`. Empty without any. */
export function countsText(counts: WorkloadMember["statuses"]): string {
  return Object.entries(counts)
    .map(([word, count]) => `${count} ${word}`)
    .join(", ");
}

function memberRow(member: WorkloadMember, divided: boolean, terminal: Terminal): string[] {
  const { cluster, wanted = 0, overflow, has, ready, statuses, whyNot = "" } = member;
  const part = overflow === undefined ? String(wanted) : `${wanted} (+${overflow} without room)`;
  const colour = wanted === has ? "green" : "yellow";
  return [
    cluster,
    ...(divided ? [terminal.paint(colour, part)] : []),
    String(has),
    String(ready),
    countsText(statuses) || "-",
    whyNot,
  ];
}
