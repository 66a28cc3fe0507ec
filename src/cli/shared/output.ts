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
const LEAST_COLUMN = 4;
// A reason has room for some words.
const LEAST_TEXT = 20;
const BELOW_INDENT = "    ";

/**
 * Aligns rows in columns, two spaces apart, as kubectl does. Colours have no width. No line is longer than `width`, the columns of
 * the terminal: the last column is broken between words, beneath its row where there is no room for it, and others are shortened.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width: number = Number.POSITIVE_INFINITY,
): string {
  const last = header.length - 1;
  const widest = (of: readonly (readonly string[])[], column: number): number =>
    Math.max(0, ...of.map((row) => textWidth(row[column] ?? "")));
  const natural = header.map((_, column) => widest([header, ...rows], column));
  const least = header.map((_, column) => Math.max(LEAST_COLUMN, widest(rows, column)));
  const text = natural[last] ?? 0;
  const rest = width - total(natural.slice(0, last)) - GAP.length;
  const beside = [...natural.slice(0, last), Math.max(Math.min(text, LEAST_TEXT), Math.min(text, rest))];
  const isBelow = text > LEAST_TEXT && total(least.slice(0, last)) + GAP.length + LEAST_TEXT > width;
  const widths = fittedWidths(isBelow ? natural.slice(0, last) : beside, least, width);
  return [header, ...rows]
    .flatMap((row, index) => (isBelow ? linesBelow(row, index === 0, widths, width) : cellLines(row, widths)))
    .map((line) => shortened(line, width))
    .join("\n");
}

/** Returns the width of columns with the gaps between them. */
function total(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each, 0) + GAP.length * Math.max(0, widths.length - 1);
}

/** Returns the lines of one row: the last column may take several. */
function cellLines(row: readonly string[], widths: readonly number[]): string[] {
  const last = widths.length - 1;
  const [first = "", ...rest] = wrapped(row[last] ?? "", Math.max(1, widths[last] ?? 0));
  return [
    aligned([...row.slice(0, last), first], widths),
    ...rest.map((line) => aligned([...row.slice(0, last).map(() => ""), line], widths)),
  ];
}

/** Returns the lines of one row with its last column beneath it, without the title of that column. */
function linesBelow(row: readonly string[], isHeader: boolean, widths: readonly number[], width: number): string[] {
  const line = aligned(row.slice(0, widths.length), widths);
  const text = row[widths.length] ?? "";
  if (isHeader || text === "") return [line];
  return [line, ...wrapped(text, Math.max(1, width - BELOW_INDENT.length)).map((each) => BELOW_INDENT + each)];
}

function aligned(cells: readonly string[], widths: readonly number[]): string {
  const padding = cells.map((cell, column) => padded(shortened(cell, widths[column] ?? 0), widths[column] ?? 0));
  return padding.join(GAP).trimEnd();
}

/**
 * Returns the widths of the columns in a terminal. Titles give way first that are longer than what is under them (`least`), then the
 * widest columns, and names, in the first column, at last.
 */
function fittedWidths(wanted: readonly number[], least: readonly number[], width: number): number[] {
  const fitted = [...wanted];
  const [name = 0] = wanted;
  const phases = [
    fitted.map((each, column) => (column === 0 ? each : (least[column] ?? 0))),
    fitted.map((_, column) => (column === 0 ? name : LEAST_COLUMN)),
    fitted.map(() => LEAST_COLUMN),
  ];
  for (const limits of phases) {
    while (total(fitted) > width) {
      const spare = fitted.map((each, column) => each - (limits[column] ?? 0));
      const most = Math.max(0, ...spare);
      if (most === 0) break;
      const column = spare.indexOf(most);
      fitted[column] = (fitted[column] ?? 0) - 1;
    }
  }
  return fitted;
}

function padded(cell: string, width: number): string {
  return cell + " ".repeat(Math.max(0, width - textWidth(cell)));
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
