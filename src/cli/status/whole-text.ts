import { WHOLE_KEY } from "../../api/keys.ts";
import { ageOf } from "../../api/wording.ts";
import { doneText } from "../../whole/jobs/state.ts";
import type { Trouble } from "../explain/model.ts";
import { reasonLine, reasonsOf } from "../explain/reasons.ts";
import { troubleText } from "../explain/text.ts";
import type { WholeJobStatus } from "../explain/whole-job.ts";
import type { WholeObjectStatus } from "../explain/whole-object.ts";
import { hiddenText } from "../shared/hidden.ts";
import { objectText, table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

interface WholeLines {
  readonly summary: readonly string[];
  readonly columns: readonly string[];
  /** Columns that a narrow terminal goes without, the least important first. */
  readonly optional: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Conditions of the status, which the members report. */
  readonly conditions: readonly { readonly what: string; readonly why: string }[];
  readonly troubles: readonly Trouble[];
  /** Words for what the account may not read. */
  readonly hidden?: string | undefined;
  /** Why no member has the object, and when that was told. */
  readonly notPlaced: { readonly at?: string; readonly reasons: readonly string[] } | undefined;
}

export function wholeJobText(status: WholeJobStatus, terminal: Terminal): string {
  const { namespace, name, cluster, shares, active, ready, succeeded, failed, completions, started, notPlaced } =
    status;
  const divided = shares.map((share) => share.cluster).join(", ");
  const members = divided === "" ? cluster : divided;
  const where =
    members === undefined
      ? "whole Job, in no member yet"
      : `whole Job, ${divided === "" ? "in" : "divided over"} ${members} with its pods`;
  const counts = `${doneText(succeeded, completions)}, ${failed} failed, ${active} active (${ready} ready)`;
  const waiting = members === undefined ? "no member has it" : `${members} has not started it`;
  const lines = {
    summary: [`Job ${namespace}/${name}: ${where}`, started === undefined ? waiting : `started ${started}: ${counts}`],
    columns: ["CLUSTER", "SUCCEEDED", "FAILED", "ACTIVE", "READY", "STATE"],
    optional: ["READY", "ACTIVE", "FAILED", "SUCCEEDED"],
    rows: shares.map((share) => [
      share.cluster,
      `${share.succeeded} of ${share.completions}`,
      String(share.failed),
      `${share.active} of ${share.parallelism}`,
      String(share.ready),
      share.state,
    ]),
    conditions: status.conditions.map(({ type, since, why }) => ({ what: `${type} since ${since}`, why })),
    troubles: status.troubles,
    hidden: status.hidden,
    notPlaced: notPlaced && { at: notPlaced.at, reasons: reasonsOf(notPlaced.message).map(reasonLine) },
  };
  return wholeText(lines, terminal);
}

/** Colours of states. Others are red. */
const COLOURS: Readonly<Record<string, "green" | "dim">> = {
  InStep: "green",
  Running: "green",
  Complete: "green",
  Excluded: "dim",
};

export function wholeObjectText(status: WholeObjectStatus, now: number, terminal: Terminal): string {
  const { kind, namespace, name, members, conditions, troubles, hidden, notPlaced } = status;
  const lines = {
    summary: [`${objectText(kind, { namespace, name })}: ${summary(status)}`],
    columns: ["CLUSTER", "STATE", "GENERATION", "HEALTH", "SINCE", "WHY"],
    optional: ["GENERATION", "SINCE", "HEALTH"],
    rows: members.map(({ cluster, state, generation, health, since, message }) => [
      cluster,
      terminal.paint(COLOURS[state] ?? "red", state),
      String(generation ?? "-"),
      health ?? "-",
      ageOf(since, now) ?? "-",
      message ?? "",
    ]),
    conditions: conditions.map(({ type, status: is, message }) => ({ what: `${type} is ${is}`, why: message })),
    troubles,
    hidden,
    notPlaced: notPlaced === undefined ? undefined : { reasons: [notPlaced] },
  };
  return wholeText(lines, terminal);
}

function summary({ whole, namedBy, isDeleting, generation, progress, members }: WholeObjectStatus): string {
  if (namedBy !== undefined) return namingText(namedBy);
  if (isDeleting) return "whole, taken back from members";
  if (!whole) return `stays on the host: it has no label ${WHOLE_KEY}, which admission sets for the annotation`;
  if (progress !== undefined) return `whole: ${progress}`;
  const wanted = members.filter(({ state }) => state !== "Excluded" && state !== "Leaving");
  const inStep = wanted.filter(({ state }) => state === "InStep").length;
  const of = generation === undefined ? "" : `, generation ${generation}`;
  return wanted.length === 0 ? "whole, in no member" : `whole, in step in ${inStep} of ${wanted.length} members${of}`;
}

function namingText(namedBy: NonNullable<WholeObjectStatus["namedBy"]>): string {
  if (namedBy.length === 0) return "no delegated pod names it, so no member has it";
  const where = namedBy.map(({ cluster, pods }) =>
    cluster === undefined ? `${pods} in no member yet` : `${pods} in ${cluster}`,
  );
  return `goes to the members of the pods that name it: ${where.sort().join(", ")}`;
}

function wholeText(
  { summary, columns, optional, rows, conditions, troubles, hidden, notPlaced }: WholeLines,
  terminal: Terminal,
): string {
  return [
    ...summary,
    ...(rows.length === 0 ? [] : [table(columns, rows, terminal.width, optional)]),
    ...conditions.map(({ what, why }) => (why === "" ? what : `${what}: ${why}`)),
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    ...(notPlaced === undefined ? [] : waitingLines(notPlaced, terminal)),
    ...hiddenText(hidden, terminal),
  ].join("\n");
}

function waitingLines({ at, reasons }: NonNullable<WholeLines["notPlaced"]>, terminal: Terminal): string[] {
  const title = `${terminal.paint("red", "waits:")} NotPlaced`;
  return [at === undefined ? title : `${title} (${at})`, ...reasons.map((reason) => `  ${reason}`)];
}
