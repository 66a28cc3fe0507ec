import { counted } from "../../api/wording.ts";
import type { ObjectPlace } from "../../simulation/simulation.ts";
import type { WholePlace } from "../../whole/type.ts";
import { whyNowhere } from "../explain/pending.ts";
import { pendingText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { objectText, table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import {
  amountsOf,
  hasNoPlace,
  isWaiting,
  type Plan,
  placedText,
  type WorkloadPlan,
  waitingPods,
  whyNotMore,
} from "./outcome.ts";

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
  const { kind, namespace, name, outcome, message, warnings, notes, clusters, pods, whole, object } = workload;
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
    ...(whole === undefined ? [] : wholeLines(whole, width)),
    ...(object === undefined ? [] : objectLines(object, width)),
    ...waitingPods(pods).flatMap((those) => pendingText(those, terminal).split("\n")),
  ];
  return [
    `${subject}: ${terminal.paint(COLOURS[outcome], summaryOf(workload))}${message === undefined ? "" : `: ${message}`}`,
    ...lines.map((line) => `  ${line}`),
  ].join("\n");
}

const WAITS = "whole, would wait";

function summaryOf({ outcome, pods, whole, object }: WorkloadPlan): string {
  if (whole !== undefined) {
    const { cluster, shares = [] } = whole;
    if (hasNoPlace(whole)) return WAITS;
    return cluster === undefined
      ? `runs whole, divided over ${shares.map((share) => share.cluster).join(", ")}`
      : `runs whole, in ${cluster}`;
  }
  if (object !== undefined) {
    const misfits = new Set(object.misfits.map(({ cluster }) => cluster));
    const names = object.clusters.map(({ cluster }) => cluster).filter((name) => !misfits.has(name));
    return names.length === 0 ? WAITS : `whole, in ${names.join(", ")}`;
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

/** Returns the lines of an object of a built-in type: its shares, why each other member does not get it, or why none does. */
function wholeLines({ cluster, shares = [], reason, message, others }: WholePlace, width: number): string[] {
  if (shares.length > 0) {
    const columns = shares.slice(0, 1).flatMap((share) => amountsOf(share).map(([amount]) => amount.toUpperCase()));
    const rows = [
      ...shares.map((share) => [
        share.cluster,
        ...amountsOf(share).map(([, amount]) => String(amount)),
        share.message === undefined ? "" : `waits for room: ${share.message}`,
      ]),
      ...declined(others).map(([member, why]) => [member, ...columns.map(() => "0"), why]),
    ];
    return rowsText(["CLUSTER", ...columns, "WHY NOT MORE"], rows, width, columns.slice(1));
  }
  if (cluster === undefined && others.length === 0) return [`${reason}: ${message}`];
  const room = cluster === undefined || message === undefined ? [] : [`waits there for room: ${message}`];
  return [...room, ...rowsText(["CLUSTER", "WHY NOT"], declined(others), width)];
}

/** Returns the lines of a whole object: overrides that do not fit, members that get it later, and why each other does not. */
function objectLines(place: ObjectPlace, width: number): string[] {
  const { clusters, others, misfits } = place;
  const why = whyNowhere(place);
  if (why !== undefined) return [`NotPlaced: ${why}`];
  return [
    ...misfits.map(({ cluster, message }) => `NotPlaced: ${cluster}: ${message}`),
    ...clusters.flatMap(({ cluster, message }) => (message === undefined ? [] : [`${cluster}: ${message}`])),
    ...rowsText(["CLUSTER", "WHY NOT"], declined(others), width),
  ];
}

function declined(others: ObjectPlace["others"]): (readonly [string, string])[] {
  return others.map(({ cluster, message }) => [cluster, message] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
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
  const ofBuiltIn = workloads.filter(({ whole }) => whole !== undefined && hasNoPlace(whole));
  return [
    // An object that some member is to have may wait there, since the author's overrides do not fit.
    ...without(
      "whole object",
      workloads.filter(({ object, outcome }) => object !== undefined && outcome === "waits").length,
    ),
    ...[...Map.groupBy(ofBuiltIn, ({ kind }) => kind)].flatMap(([kind, those]) =>
      without(`whole ${kind}`, those.length),
    ),
    ...without("pod", workloads.flatMap(({ pods }) => pods).filter(isWaiting).length),
    ...without("object", workloads.filter(({ outcome }) => outcome === "refused").length, "be refused"),
  ].join(", ");
}
