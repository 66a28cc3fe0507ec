import { counted, table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { isWaiting, type Plan, type PlannedMember, type PlanOutcome, type WorkloadPlan } from "./outcome.ts";

const COLOURS = { fits: "green", waits: "red", refused: "red", notDelegated: "dim" } as const;

/** Returns the plan as text. */
export function planText({ workloads, guesses, notChecked }: Plan, terminal: Terminal): string {
  const parts = workloads.map((workload) => workloadText(workload, terminal));
  if (guesses.length > 0) {
    const lines = guesses.map(({ cluster, message }) => `  ${cluster}: ${message}`);
    parts.push([terminal.paint("yellow", "guesses, since the host cannot tell:"), ...lines].join("\n"));
  }
  if (notChecked.length > 0) {
    parts.push([terminal.paint("yellow", "not checked:"), ...notChecked.map((what) => `  ${what}`)].join("\n"));
  }
  return parts.join("\n\n");
}

function workloadText(workload: WorkloadPlan, terminal: Terminal): string {
  const { kind, namespace, name, outcome, message, warnings, notes, clusters, pods } = workload;
  const what = terminal.paint(COLOURS[outcome], summary(workload));
  const subject = kind === "Namespace" ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
  const lines = [`${subject}: ${what}${message === undefined ? "" : `: ${message}`}`];
  for (const note of notes) lines.push(`  ${note}`);
  for (const warning of warnings) lines.push(`  ${terminal.paint("yellow", "warning:")} ${warning}`);
  if (clusters.length > 0 && pods.length > 0) {
    const rows = clusters.flatMap((member) => memberRows(member, pods.length));
    lines.push(indented(table(["CLUSTER", "PODS", "WHY NOT MORE"], rows)));
  }
  const waiting = Map.groupBy(pods.filter(isWaiting), ({ reason = "", message: why = "" }) => `${reason}: ${why}`);
  for (const [why, those] of waiting) {
    const names = those.length === 1 ? `${those[0]?.name} waits` : `${those.length} pods wait (${those[0]?.name}, …)`;
    lines.push(`  ${names}: ${why}`);
  }
  return lines.join("\n");
}

function summary({ outcome, pods }: WorkloadPlan): string {
  const waiting = pods.filter(isWaiting).length;
  const words: Readonly<Record<PlanOutcome, string>> = {
    fits: fitting(pods),
    waits: `${waiting} of ${pods.length} pods would wait`,
    refused: "would be refused",
    notDelegated: "not delegated",
  };
  return words[outcome];
}

function fitting(pods: WorkloadPlan["pods"]): string {
  const [only] = pods;
  if (pods.length === 0) return "no pod comes";
  return only === undefined || pods.length > 1
    ? `${pods.length} pods fit`
    : `fits, ${only.cluster === undefined ? "on this cluster" : `in ${only.cluster}`}`;
}

function memberRows({ cluster, pods, waiting, whyNot }: PlannedMember, all: number): string[][] {
  const count = waiting === 0 ? String(pods) : `${pods} (+${waiting} waiting)`;
  const reasons = whyNot.map(({ message, pods: those }) =>
    those === all ? message : `${message} (${counted(those)})`,
  );
  const [first = "", ...rest] = reasons;
  return [[cluster, count, first], ...rest.map((reason) => ["", "", reason])];
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, "  ");
}
