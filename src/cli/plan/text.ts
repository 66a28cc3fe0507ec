import { counted } from "../../api/wording.ts";
import type { WholePlace } from "../../whole/type.ts";
import { whyNowhere } from "../explain/pending.ts";
import { pendingText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { objectText, table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { isWaiting, type Plan, placedText, type WorkloadPlan, waitingPods, whyNotMore } from "./outcome.ts";

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
  const { kind, namespace, name, outcome, message, warnings, notes, clusters, pods, object } = workload;
  const width = terminal.width - INDENT;
  const subject = objectText(kind, { name, namespace });
  const rows = clusters.flatMap((member) => {
    const [first = "", ...rest] = whyNotMore(member, pods.length);
    return [[member.cluster, placedText(member), first], ...rest.map((reason) => ["", "", reason])];
  });
  const lines = [
    ...notes,
    ...warnings.map((warning) => `${terminal.paint("yellow", "warning:")} ${warning}`),
    ...rowsText(["CLUSTER", "PODS", "WHY NOT MORE"], rows, width),
    ...(object === undefined ? [] : objectLines(object, width)),
    ...waitingPods(pods).flatMap((those) => pendingText(those, terminal).split("\n")),
  ];
  return [
    `${subject}: ${terminal.paint(COLOURS[outcome], summaryOf(workload))}${message === undefined ? "" : `: ${message}`}`,
    ...lines.map((line) => `  ${line}`),
  ].join("\n");
}

function summaryOf({ outcome, pods, object }: WorkloadPlan): string {
  if (object !== undefined) {
    const misfits = new Set(object.misfits.map(({ cluster }) => cluster));
    const names = object.clusters.map(({ cluster }) => cluster).filter((name) => !misfits.has(name));
    const where = object.clusters[0]?.amounts === undefined ? "in" : "divided over";
    return names.length === 0 ? "whole, would wait" : `whole, ${where} ${names.join(", ")}`;
  }
  switch (outcome) {
    case "refused":
      return "would be refused";
    case "notDelegated":
      return "not delegated";
    case "waits":
      return `${pods.filter(isWaiting).length} of ${pods.length} pods would wait`;
    case "fits":
      if (pods.length === 0) return "no pod comes";
      return pods.length > 1 ? `${pods.length} pods fit` : `fits, in ${pods[0]?.cluster}`;
  }
}

/** Returns the lines of a whole object: overrides that do not fit, what members get later or in part, and why others do not. */
function objectLines(place: WholePlace, width: number): string[] {
  const { clusters, others, misfits } = place;
  const why = whyNowhere(place);
  if (why !== undefined) return [`NotPlaced: ${why}`];
  const amounts = Object.keys(clusters[0]?.amounts ?? {});
  const columns = amounts.map((amount) => amount.toUpperCase());
  const shares = clusters.flatMap(({ cluster, amounts: own, message = "" }) =>
    own === undefined ? [] : [[cluster, ...amounts.map((amount) => String(own[amount] ?? 0)), message]],
  );
  const rest = others
    .toSorted((a, b) => (a.cluster < b.cluster ? -1 : 1))
    .map(({ cluster, message }) => [cluster, ...amounts.map(() => "0"), message]);
  return [
    ...misfits.map(({ cluster, message }) => `NotPlaced: ${cluster}: ${message}`),
    ...clusters.flatMap(({ cluster, amounts: own, message }) =>
      own !== undefined || message === undefined ? [] : [`${cluster}: ${message}`],
    ),
    ...rowsText(
      ["CLUSTER", ...columns, amounts.length === 0 ? "WHY NOT" : "WHY NOT MORE"],
      [...shares, ...rest],
      width,
      columns.slice(1),
    ),
  ];
}

function rowsText(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  ...options: [number, string[]?]
): string[] {
  return rows.length === 0 ? [] : table(header, rows, ...options).split("\n");
}

/** Returns how much of a plan would wait or be refused: `2 pods would wait, 1 object would be refused`. */
export function shortfallOf({ workloads }: Plan): string {
  const without = (noun: string, number: number, fate = "wait"): string[] =>
    number === 0 ? [] : [`${counted(number, noun)} would ${fate}`];
  return [
    // An object that some member is to have may wait there, since the author's overrides do not fit.
    ...without(
      "whole object",
      workloads.filter(({ object, outcome }) => object !== undefined && outcome === "waits").length,
    ),
    ...without("pod", workloads.flatMap(({ pods }) => pods).filter(isWaiting).length),
    ...without("object", workloads.filter(({ outcome }) => outcome === "refused").length, "be refused"),
  ].join(", ");
}
