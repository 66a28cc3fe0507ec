import { stringify } from "yaml";
import { z } from "zod";
import { fittedWidths, keptColumns, LEAST_TEXT, omissionNote, totalWidth } from "./columns.ts";
import type { Terminal } from "./terminal.ts";
import { fitted, padded, shortened, textWidth, wrapped } from "./text-width.ts";

/** Format of a command's result: `text` without `-o`, and `wide` for text with all that a narrow terminal leaves out. */
export type OutputFormat = "text" | "wide" | "json" | "yaml";

/** Builds the schema of `-o`: the formats of every command, and those of one. */
export function formatOf<Own extends string = never>(...own: readonly Own[]): z.ZodType<OutputFormat | Own> {
  const formats: readonly (OutputFormat | Own)[] = ["wide", ...own, "json", "yaml"];
  const words = `${formats.slice(0, -1).join(", ")} or ${formats.at(-1)}`;
  return z
    .string()
    .optional()
    .transform((text, context): OutputFormat | Own => {
      const format = text === undefined ? "text" : formats.find((each) => each === text);
      if (format !== undefined) return format;
      context.addIssue(`${JSON.stringify(text)} is not a format; write ${words}`);
      return z.NEVER;
    });
}

/** A result, for people and for scripts. */
export interface Outcome {
  readonly text: string;
  readonly document: unknown;
}

export function printOutcome(terminal: Terminal, format: OutputFormat, outcome: Outcome): void {
  if (format === "json") terminal.print(JSON.stringify(outcome.document, null, 2));
  else if (format === "yaml") terminal.write(stringify(outcome.document));
  else if (outcome.text !== "") terminal.print(fitted(outcome.text, terminal.width));
}

const GAP = "  ";
const BELOW_INDENT = "    ";

/**
 * Aligns rows in columns, two spaces apart, as kubectl does. Colours have no width. No line is longer than `width`, the columns of
 * the terminal: columns titled as in `optional` are left out, the least important first. Then the last column is broken between words,
 * beneath its row where there is no room for it, and others are shortened.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width: number = Number.POSITIVE_INFINITY,
  optional: readonly string[] = [],
): string {
  const room = { width, gap: GAP.length };
  const natural = header.map((_, column) => Math.max(...[header, ...rows].map((row) => textWidth(row[column] ?? ""))));
  const kept = keptColumns(
    natural,
    optional.map((title) => header.indexOf(title)),
    room,
  );
  if (kept.length < header.length) {
    const of = (row: readonly string[]): string[] => kept.map((column) => row[column] ?? "");
    const omitted = header.filter((_, column) => !kept.includes(column));
    return [table(of(header), rows.map(of), width), ...omissionNote(omitted, width)].join("\n");
  }
  const text = natural.at(-1) ?? 0;
  const before = natural.slice(0, -1);
  const rest = width - totalWidth(before, room.gap) - room.gap;
  const isBelow = text > LEAST_TEXT && rest < LEAST_TEXT;
  const wanted = isBelow ? before : [...before, Math.max(Math.min(text, LEAST_TEXT), Math.min(text, rest))];
  const widths = fittedWidths(wanted, header.map(textWidth), room);
  return [header, ...rows]
    .flatMap((row) => (isBelow ? linesBelow(row, widths, width) : cellLines(row, widths)))
    .map((line) => shortened(line, width))
    .join("\n");
}

/** The columns of a table: by each title, what a row has there. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => string>>;

/** Formats rows as `table` does. Undefined without rows. */
export function tableOf<Row>(
  rows: readonly Row[],
  columns: Columns<Row>,
  width: number,
  optional: readonly string[] = [],
): string | undefined {
  const cells = rows.map((row) => Object.values(columns).map((cell) => cell(row)));
  return rows.length === 0 ? undefined : table(Object.keys(columns), cells, width, optional);
}

/** Joins the lines of a text. Those that are undefined or false are left out. */
export function textOf(lines: readonly (string | false | undefined)[]): string {
  return lines.filter((line) => line !== undefined && line !== false).join("\n");
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

/** Returns the lines of one row with its last column beneath it. */
function linesBelow(row: readonly string[], widths: readonly number[], width: number): string[] {
  const text = wrapped(row[widths.length] ?? "", Math.max(1, width - BELOW_INDENT.length));
  const lines = [aligned(row.slice(0, widths.length), widths), ...text.map((each) => BELOW_INDENT + each)];
  return lines.filter((line) => line.trim() !== "");
}

function aligned(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => padded(shortened(cell, widths[column] ?? 0), widths[column] ?? 0))
    .join(GAP)
    .trimEnd();
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
