import { stringify } from "yaml";
import { z } from "zod";
import { fits, fittedWidths, keptColumns, LEAST_TEXT, omissionNote } from "./columns.ts";
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
  const all = [header, ...rows];
  const natural = header.map((_, column) => Math.max(...all.map((row) => textWidth(row[column] ?? ""))));
  const indexes = optional.map((title) => header.indexOf(title));
  const kept = keptColumns(natural, indexes, room);
  const before = kept.slice(0, -1).map((column) => natural[column] ?? 0);
  const text = natural[kept.at(-1) ?? 0] ?? 0;
  const isBelow = text > LEAST_TEXT && !fits([...before, LEAST_TEXT], room);
  const rest = width - before.reduce((sum, each) => sum + each + room.gap, 0);
  const wanted = isBelow ? before : [...before, Math.min(text, Math.max(LEAST_TEXT, rest))];
  const titles = wanted.map((_, column) => textWidth(header[kept[column] ?? 0] ?? ""));
  const widths = fittedWidths(wanted, titles, room);
  const lines = all.flatMap((row) => {
    const cells = kept.map((column) => row[column] ?? "");
    const lead = widths
      .slice(0, before.length)
      .map((each, column) => padded(shortened(cells[column] ?? "", each), each));
    const most = isBelow ? width - BELOW_INDENT.length : (widths.at(-1) ?? 0);
    const [first = "", ...more] = wrapped(cells.at(-1) ?? "", Math.max(1, most));
    if (isBelow) return [lead.join(GAP), ...[first, ...more].map((each) => BELOW_INDENT + each)].filter(hasText);
    const indent = lead.map((cell) => " ".repeat(textWidth(cell)));
    return [[...lead, first].join(GAP), ...more.map((each) => [...indent, each].join(GAP))];
  });
  const omitted = header.filter((_, column) => !kept.includes(column));
  return [...lines.map((line) => shortened(line.trimEnd(), width)), ...omissionNote(omitted, width)].join("\n");
}

function hasText(line: string): boolean {
  return line.trim() !== "";
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
