import { counted, table, waitingText } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import type { ObjectPlace, WholePlace } from "../simulation/simulation.ts";
import { hasNoPlace, isWaiting, type Plan, type PlannedMember, type WorkloadPlan } from "./outcome.ts";

const COLOURS = { fits: "green", waits: "red", refused: "red", notDelegated: "dim" } as const;

// Columns by which the lines of a workload are indented.
const INDENT = 2;

/** Returns the plan as text. */
export function planText({ workloads, guesses, notChecked }: Plan, terminal: Terminal): string {
  const list = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : [[terminal.paint("yellow", title), ...lines.map((line) => `  ${line}`)].join("\n")];
  return [
    ...workloads.map((workload) => workloadText(workload, terminal)),
    ...list(
      "guesses, since the host cannot tell:",
      guesses.map(({ cluster, message }) => `${cluster}: ${message}`),
    ),
    ...list("not checked:", notChecked),
  ].join("\n\n");
}

function workloadText(workload: WorkloadPlan, terminal: Terminal): string {
  const { kind, namespace, name, outcome, message, warnings, notes, clusters, pods, whole, object } = workload;
  const what = terminal.paint(COLOURS[outcome], summary(workload));
  const subject = kind === "Namespace" || namespace === "" ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
  const lines = [...notes, ...warnings.map((warning) => `${terminal.paint("yellow", "warning:")} ${warning}`)];
  if (clusters.length > 0) {
    const rows = clusters.flatMap((member) => memberRows(member, pods.length));
    lines.push(...table(["CLUSTER", "PODS", "WHY NOT MORE"], rows, terminal.width - INDENT).split("\n"));
  }
  if (whole !== undefined) lines.push(...wholeLines(whole, terminal.width - INDENT));
  if (object !== undefined) lines.push(...objectLines(object, terminal.width - INDENT));
  const waiting = Map.groupBy(pods.filter(isWaiting), ({ reason = "", message: why = "" }) => `${reason}: ${why}`);
  for (const [why, those] of waiting) lines.push(`${waitingText(those.map((pod) => pod.name))}: ${why}`);
  return [
    `${subject}: ${what}${message === undefined ? "" : `: ${message}`}`,
    ...lines.map((line) => `  ${line}`),
  ].join("\n");
}

function summary({ outcome, pods, whole, object }: WorkloadPlan): string {
  const [first] = pods;
  if (whole !== undefined) return wholeSummary(whole);
  if (object !== undefined) return objectSummary(object);
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

function wholeSummary(whole: WholePlace): string {
  if (hasNoPlace(whole)) return "whole, would wait";
  const { cluster = "", shares } = whole;
  return shares === undefined
    ? `runs whole, in ${cluster}`
    : `runs whole, divided over ${shares.map((share) => share.cluster).join(", ")}`;
}

/** Returns the lines of a whole Job: its shares, why each other member does not get it, or why none does. */
function wholeLines({ cluster, shares = [], reason = "", message, others }: WholePlace, width: number): string[] {
  if (cluster === undefined && shares.length === 0 && others.length === 0) return [`${reason}: ${message ?? ""}`];
  const declined = others.map((other) => [other.cluster, other.message]).toSorted(byCluster);
  if (shares.length > 0) {
    const rows = [
      ...shares.map(({ cluster: member, completions, parallelism, message: room }) => [
        member,
        String(completions),
        String(parallelism),
        room === undefined ? "" : `waits for room: ${room}`,
      ]),
      ...declined.map(([member = "", why = ""]) => [member, "0", "0", why]),
    ];
    return table(["CLUSTER", "COMPLETIONS", "PARALLELISM", "WHY NOT MORE"], rows, width).split("\n");
  }
  const room = cluster === undefined || message === undefined ? [] : [`waits there for room: ${message}`];
  return [...room, ...(declined.length === 0 ? [] : table(["CLUSTER", "WHY NOT"], declined, width).split("\n"))];
}

function objectSummary({ clusters, misfits }: ObjectPlace): string {
  const names = clusters
    .map(({ cluster }) => cluster)
    .filter((name) => misfits.every(({ cluster }) => cluster !== name));
  return names.length === 0 ? "whole, would wait" : `whole, in ${names.join(", ")}`;
}

/** Returns the lines of a whole object: overrides that do not fit, members that get it later, and why each other does not. */
function objectLines({ problem, clusters, others, misfits }: ObjectPlace, width: number): string[] {
  if (problem !== undefined) return [`NotPlaced: ${problem}`];
  const unfitting = misfits.map(({ cluster, message }) => `NotPlaced: ${cluster}: ${message}`);
  const later = clusters.flatMap(({ cluster, message }) => (message === undefined ? [] : [`${cluster}: ${message}`]));
  if (clusters.length === 0 && others.length === 0) return ["NotPlaced: this cluster has no members"];
  const declined = others.map(({ cluster, message }) => [cluster, message]).toSorted(byCluster);
  return [
    ...unfitting,
    ...later,
    ...(declined.length === 0 ? [] : table(["CLUSTER", "WHY NOT"], declined, width).split("\n")),
  ];
}

function byCluster([a = ""]: readonly string[], [b = ""]: readonly string[]): number {
  return a < b ? -1 : 1;
}

function memberRows({ cluster, pods, waiting, whyNot }: PlannedMember, all: number): string[][] {
  const count = waiting === 0 ? String(pods) : `${pods} (+${waiting} waiting)`;
  const reasons = whyNot.map(({ message, pods: those }) =>
    those === all ? message : `${message} (${counted(those)})`,
  );
  const [first = "", ...rest] = reasons;
  return [[cluster, count, first], ...rest.map((reason) => ["", "", reason])];
}
