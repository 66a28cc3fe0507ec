import { pendingText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import {
  isWaiting,
  type Plan,
  type PlannedMember,
  placedText,
  type WorkloadPlan,
  waitingPods,
  whyNotMore,
} from "./outcome.ts";
import { wholeText } from "./whole-text.ts";

const COLOURS = { fits: "green", waits: "red", refused: "red", notDelegated: "dim" } as const;

// Columns by which the lines of a workload are indented.
const INDENT = 2;

export function planText({ workloads, guesses, notChecked, hidden }: Plan, terminal: Terminal): string {
  const list = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : [[terminal.paint("yellow", title), ...lines.map((line) => `  ${line}`)].join("\n")];
  return [
    ...workloads.map((workload) => workloadText(workload, terminal)),
    ...list(
      "guesses, since the host cannot tell:",
      guesses.map(({ cluster, message }) => `${cluster}: ${message}`),
    ),
    ...list("not checked:", notChecked),
    ...hiddenText(hidden, terminal),
  ].join("\n\n");
}

function workloadText(workload: WorkloadPlan, terminal: Terminal): string {
  const { kind, namespace, name, outcome, message, warnings, notes, clusters, pods } = workload;
  const width = terminal.width - INDENT;
  const whole = wholeText(workload, width);
  const what = terminal.paint(COLOURS[outcome], whole?.summary ?? podsSummary(workload));
  const subject = kind === "Namespace" || namespace === "" ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
  const lines = [...notes, ...warnings.map((warning) => `${terminal.paint("yellow", "warning:")} ${warning}`)];
  if (clusters.length > 0) {
    const rows = clusters.flatMap((member) => memberRows(member, pods.length));
    lines.push(...table(["CLUSTER", "PODS", "WHY NOT MORE"], rows, width).split("\n"));
  }
  lines.push(...(whole?.lines ?? []));
  lines.push(...waitingPods(pods).flatMap((those) => pendingText(those, terminal).split("\n")));
  return [
    `${subject}: ${what}${message === undefined ? "" : `: ${message}`}`,
    ...lines.map((line) => `  ${line}`),
  ].join("\n");
}

function podsSummary({ outcome, pods }: WorkloadPlan): string {
  const [first] = pods;
  switch (outcome) {
    case "refused":
      return "would be refused";
    case "notDelegated":
      return "not delegated";
    case "waits":
      return `${pods.filter(isWaiting).length} of ${pods.length} pods would wait`;
    case "fits":
      if (first === undefined) return "no pod comes";
      return pods.length > 1 ? `${pods.length} pods fit` : `fits, in ${first.cluster}`;
  }
}

function memberRows(member: PlannedMember, all: number): string[][] {
  const [first = "", ...rest] = whyNotMore(member, all);
  return [[member.cluster, placedText(member), first], ...rest.map((reason) => ["", "", reason])];
}
