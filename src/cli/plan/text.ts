import { counted } from "../../api/wording.ts";
import type { ObjectPlace } from "../../simulation/simulation.ts";
import type { Declined, WholePlace, WholeType } from "../../whole/type.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { whyNowhere } from "../explain/pending.ts";
import { pendingText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import {
  amountsOf,
  hasNoPlace,
  isWaiting,
  type Plan,
  type PlannedMember,
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

interface WholeText {
  readonly summary: string;
  readonly lines: readonly string[];
}

const WAITS = "whole, would wait";

/** Formats the place of a whole Job or object for people. Undefined: the plan is that of pods. */
function wholeText({ whole, object }: WorkloadPlan, width: number): WholeText | undefined {
  if (whole !== undefined) return { summary: builtInSummary(whole), lines: builtInLines(whole, width) };
  return object && { summary: objectSummary(object), lines: objectLines(object, width) };
}

function builtInSummary(whole: WholePlace): string {
  if (hasNoPlace(whole)) return WAITS;
  const { cluster = "", shares } = whole;
  return shares === undefined
    ? `runs whole, in ${cluster}`
    : `runs whole, divided over ${shares.map((share) => share.cluster).join(", ")}`;
}

/** Returns the lines of an object of a built-in type: its shares, why each other member does not get it, or why none does. */
function builtInLines({ cluster, shares = [], reason = "", message, others }: WholePlace, width: number): string[] {
  if (cluster === undefined && shares.length === 0 && others.length === 0) return [`${reason}: ${message ?? ""}`];
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
    return table(["CLUSTER", ...columns, "WHY NOT MORE"], rows, width, columns.slice(1)).split("\n");
  }
  const room = cluster === undefined || message === undefined ? [] : [`waits there for room: ${message}`];
  return [...room, ...whyNot(others, width)];
}

function objectSummary({ clusters, misfits }: ObjectPlace): string {
  const names = clusters
    .map(({ cluster }) => cluster)
    .filter((name) => misfits.every(({ cluster }) => cluster !== name));
  return names.length === 0 ? WAITS : `whole, in ${names.join(", ")}`;
}

/** Returns the lines of a whole object: overrides that do not fit, members that get it later, and why each other does not. */
function objectLines(place: ObjectPlace, width: number): string[] {
  const { clusters, others, misfits } = place;
  const why = whyNowhere(place);
  if (why !== undefined) return [`NotPlaced: ${why}`];
  return [
    ...misfits.map(({ cluster, message }) => `NotPlaced: ${cluster}: ${message}`),
    ...clusters.flatMap(({ cluster, message }) => (message === undefined ? [] : [`${cluster}: ${message}`])),
    ...whyNot(others, width),
  ];
}

type Refused = readonly Pick<Declined, "cluster" | "message">[];

function whyNot(others: Refused, width: number): string[] {
  return others.length === 0 ? [] : table(["CLUSTER", "WHY NOT"], declined(others), width).split("\n");
}

function declined(others: Refused): (readonly [string, string])[] {
  return others.map(({ cluster, message }) => [cluster, message] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Returns how much of a plan would wait or be refused: `2 pods would wait, 1 object would be refused`. */
export function shortfallOf({ workloads }: Plan): string {
  const refused = workloads.filter(({ outcome }) => outcome === "refused").length;
  const waiting = workloads.flatMap(({ pods }) => pods).filter(isWaiting).length;
  const ofBuiltIn = workloads.filter(({ whole }) => whole !== undefined && hasNoPlace(whole));
  // An object that some member is to have may wait there, since the author's overrides do not fit.
  const wholeObjects = workloads.filter(({ object, outcome }) => object !== undefined && outcome === "waits").length;
  return [
    { number: wholeObjects, noun: "whole object", fate: "wait" },
    ...[...Map.groupBy(ofBuiltIn, builtInKind)].map(([kind, those]) => {
      return { number: those.length, noun: `whole ${kind}`, fate: "wait" };
    }),
    { number: waiting, noun: "pod", fate: "wait" },
    { number: refused, noun: "object", fate: "be refused" },
  ]
    .flatMap(({ number, noun, fate }) => (number === 0 ? [] : [`${counted(number, noun)} would ${fate}`]))
    .join(", ");
}

/** Returns the kind of the object that has a place as a whole: of a CronJob that is one of its Jobs. */
function builtInKind({ kind }: WorkloadPlan): string {
  const isMadeOf = ({ makers }: WholeType): boolean => makers.some(({ resource }) => resource.kind === kind);
  return WHOLE_TYPES.find(isMadeOf)?.resource.kind ?? kind;
}
