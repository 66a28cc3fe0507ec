import { stringify } from "yaml";
import { z } from "zod";
import type { Terminal } from "./terminal.ts";
import { shortened, textWidth, wrapped } from "./text-width.ts";

/** Format of a command's result. */
export const outputFormat: z.ZodType<"text" | "json" | "yaml"> = z
  .enum(["text", "json", "yaml"], {
    error: (issue) => `${JSON.stringify(issue.input)} is not a format; write json or yaml`,
  })
  .default("text");

/** A result, for people and for scripts. */
export interface Outcome {
  /** Lines for a person. */
  readonly text: string;
  /** The result for `-o json|yaml`. */
  readonly document: unknown;
}

/** Prints one result in the chosen format. */
export function printOutcome(terminal: Terminal, format: "text" | "json" | "yaml", outcome: Outcome): void {
  if (format === "json") terminal.print(JSON.stringify(outcome.document, null, 2));
  else if (format === "yaml") terminal.write(stringify(outcome.document));
  else if (outcome.text !== "") terminal.print(outcome.text);
}

const GAP = "  ";
// A shortened name still tells what it is, and a reason has room for some words.
const LEAST_COLUMN = 6;
const LEAST_TEXT = 20;

/**
 * Aligns rows in columns, two spaces apart, as kubectl does. Colours have no width. No line is longer than `width`, the columns of
 * the terminal: the last column is broken between words, and others are shortened.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width: number = Number.POSITIVE_INFINITY,
): string {
  const all = [header, ...rows];
  const natural = header.map((_, column) => Math.max(...all.map((row) => textWidth(row[column] ?? ""))));
  const widths = fittedWidths(natural, width);
  return all
    .flatMap((row) => cellLines(row, widths))
    .map((cells) =>
      shortened(
        cells
          .map((cell, column) => padded(cell, widths[column] ?? 0))
          .join(GAP)
          .trimEnd(),
        width,
      ),
    )
    .join("\n");
}

/** Returns the lines of one row: the last column may take several. */
function cellLines(row: readonly string[], widths: readonly number[]): string[][] {
  const last = widths.length - 1;
  const shown = widths.map((width, column) => shortened(row[column] ?? "", width));
  const text = row[last] ?? "";
  const most = widths[last] ?? 0;
  if (textWidth(text) <= most) return [shown];
  const [first = "", ...rest] = wrapped(text, most);
  return [[...shown.slice(0, last), first], ...rest.map((line) => [...widths.slice(0, last).map(() => ""), line])];
}

/** Returns the widths of the columns in a terminal: the last one gives way first, then the widest of the others. */
function fittedWidths(natural: readonly number[], width: number): number[] {
  const fitted = [...natural];
  const last = fitted.length - 1;
  const excess = (): number => fitted.reduce((sum, each) => sum + each, 0) + GAP.length * last - width;
  if (excess() > 0) fitted[last] = Math.max(Math.min(natural[last] ?? 0, LEAST_TEXT), (natural[last] ?? 0) - excess());
  while (excess() > 0) {
    const widest = Math.max(...fitted.slice(0, last));
    if (last < 1 || widest <= LEAST_COLUMN) break;
    fitted[fitted.indexOf(widest)] = widest - 1;
  }
  return fitted;
}

function padded(cell: string, width: number): string {
  return cell + " ".repeat(Math.max(0, width - textWidth(cell)));
}

/** Formats a time span as kubectl formats ages. */
export function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  return `${Math.floor(hours / 24)}d`;
}

/** Formats a count: `1 pod`, `3 pods`. */
export function counted(number: number, noun = "pod"): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Formats pods that wait for one reason: `web-0 waits`, `3 pods wait (web-0, …)`. */
export function waitingText(names: readonly string[]): string {
  return names.length === 1 ? `${names[0]} waits` : `${names.length} pods wait (${names[0]}, …)`;
}

/** Formats an object: `ConfigMap shop/settings`, `Namespace shop`. */
export function objectText(
  kind: string,
  { namespace, name }: { readonly namespace?: string | undefined; readonly name: string },
): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

const SHOWN = 5;

/** Joins the first few items of a list for a message. */
export function some(items: readonly string[]): string {
  const rest = items.length - SHOWN;
  return items.slice(0, SHOWN).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
