import { ageOf, counted, countedAre } from "../../api/wording.ts";
import { pendingText, troubleText } from "../explain/text.ts";
import type { WorkloadMember, WorkloadRun, WorkloadStatus } from "../explain/workload.ts";
import { hiddenText } from "../shared/hidden.ts";
import { type Columns, tableOf, textOf } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

export function workloadText(status: WorkloadStatus, now: number, terminal: Terminal): string {
  const { kind, namespace, name, pods, rebalance, clusters, onHost, notDelegated, pending, troubles, next } = status;
  const readyCount = clusters.reduce((sum, member) => sum + member.ready, 0) + status.readyOnHost;
  const state =
    status.ended === undefined
      ? `${status.replicas} wanted, ${pods} there, ${readyCount} ready`
      : `${status.ended}, ${counted(pods)} there`;
  const overflowing = onHost - notDelegated;
  const why = status.whyOnHost === undefined ? "" : `: ${status.whyOnHost}`;
  return textOf([
    `${kind} ${namespace}/${name}: ${state}`,
    membersTable(clusters, rebalance !== undefined, terminal),
    rebalance === false && "rebalance is off: pods that run stay where they are; new ones keep the division",
    overflowing > 0 && `${countedAre(overflowing, "in overflow mode")} this cluster's so far`,
    notDelegated > 0 && `${countedAre(notDelegated)} not delegated${why}`,
    next && `one more pod would go to ${next}`,
    status.runs.length > 0 && `\n${runsTable(status.runs, now, terminal)}`,
    ...troubles.slice(0, MOST_TROUBLES).map((trouble) => troubleText(trouble, terminal)),
    troubles.length > MOST_TROUBLES && `… and ${troubles.length - MOST_TROUBLES} more troubles (-o json)`,
    ...pending.map((those) => pendingText(those, terminal)),
    ...hiddenText(status.hidden, terminal),
  ]);
}

// Fits on one screen.
const MOST_TROUBLES = 8;

function membersTable(members: readonly WorkloadMember[], divided: boolean, terminal: Terminal): string | undefined {
  const columns: Columns<WorkloadMember> = {
    CLUSTER: ({ cluster }) => cluster,
    ...(divided && {
      WANTED: ({ wanted = 0, overflow, has }) =>
        terminal.paint(
          wanted === has ? "green" : "yellow",
          overflow === undefined ? String(wanted) : `${wanted} (+${overflow} without room)`,
        ),
    }),
    HAS: ({ has }) => String(has),
    READY: ({ ready }) => String(ready),
    PODS: ({ statuses }) => countsText(statuses) || "-",
    "WHY NOT THE NEXT": ({ whyNot }) => whyNot ?? "",
  };
  return tableOf(members, columns, terminal.width, ["READY", "PODS"]);
}

function runsTable(runs: readonly WorkloadRun[], now: number, terminal: Terminal): string | undefined {
  const columns: Columns<WorkloadRun> = {
    JOB: ({ name }) => name,
    STATE: ({ state }) => state,
    SUCCEEDED: ({ succeeded }) => String(succeeded),
    FAILED: ({ failed }) => String(failed),
    "WHOLE IN": ({ clusters }) => clusters.join(",") || "-",
    AGE: ({ created }) => ageOf(created, now) ?? "-",
  };
  return tableOf(runs, columns, terminal.width, ["AGE", "SUCCEEDED", "FAILED"]);
}

/** Formats counts: `2 Running, 1 Pending`. Empty without any. */
export function countsText(counts: WorkloadMember["statuses"]): string {
  return Object.entries(counts)
    .map(([word, count]) => `${count} ${word}`)
    .join(", ");
}
