import type { TablePage } from "../../kube/tables.ts";
import { keptColumns, omissionNote } from "../shared/columns.ts";
import type { Terminal } from "../shared/terminal.ts";
import { padded, textWidth } from "../shared/text-width.ts";
import { type ColumnOptions, cellsOf, type EventType, headerOf, mergeColumns } from "./columns.ts";
import { type ClusterPage, type ListPrinter, typePrefix } from "./printers.ts";

// As kubectl separates columns.
const GAP = "   ";
const LONGEST_EVENT: EventType = "MODIFIED";
// Columns that the user asked for, and those that say what an object is and how it is.
const STAYING = ["EVENT", "CLUSTER", "NAMESPACE", "LABELS", "NAME", "STATUS", "OBJECT", "REASON", "MESSAGE"];

export interface TableFormat extends Omit<ColumnOptions, "kindPrefix" | "namespaces"> {
  readonly allNamespaces: boolean;
}

type TableTerminal = Pick<Terminal, "write" | "paint" | "width">;

/** Prints one table for each type. Columns that do not fit into the terminal are left out; no cell is shortened. */
export class TablePrinter implements ListPrinter {
  readonly #terminal: TableTerminal;
  readonly #format: TableFormat;
  #type = "";
  #titles: readonly string[] = [];
  #options: ColumnOptions;
  #widths: number[] = [];
  /** The columns that are printed, by their index. */
  #kept: readonly number[] = [];
  #notes: readonly string[] = [];
  #headerDue = false;
  #hasPrinted = false;

  constructor(terminal: TableTerminal, format: TableFormat) {
    this.#terminal = terminal;
    this.#format = format;
    this.#options = { ...format, kindPrefix: undefined, namespaces: false };
  }

  begin(firstPages: readonly ClusterPage[], isOneOfSeveral: boolean): void {
    const [sample] = firstPages;
    if (sample === undefined) return;
    const type = typePrefix(sample.resource);
    const isSame = type === this.#type;
    const known = isSame ? [this.#titles.map((name) => ({ name, priority: 0 }))] : [];
    const tables = firstPages.map(({ page }) => page).filter(({ columns }) => columns.length > 0);
    const titles = mergeColumns([...known, ...tables.map(({ columns }) => columns)], this.#format.wide);
    if (!isSame || titles.length > this.#titles.length) {
      this.#type = type;
      this.#titles = titles;
      this.#options = {
        ...this.#format,
        kindPrefix: isOneOfSeveral ? type : undefined,
        namespaces: this.#format.allNamespaces && sample.resource.namespaced,
      };
      this.#widths = headerOf(titles, this.#options).map(textWidth);
      if (this.#options.events) this.#widths[0] = LONGEST_EVENT.length;
      this.#headerDue = true;
    }
    for (const first of firstPages) this.#fit(this.#rows(first));
  }

  print(page: ClusterPage): void {
    const rows = this.#rows(page);
    if (rows.length === 0) return;
    this.#fit(rows);
    if (this.#headerDue) {
      this.end();
      if (this.#hasPrinted) this.#terminal.write("\n");
      const titles = headerOf(this.#titles, this.#options);
      this.#omit(titles);
      this.#terminal.write(`${this.#terminal.paint("bold", this.#line(titles))}\n`);
    }
    this.#headerDue = false;
    this.#hasPrinted = true;
    this.#terminal.write(rows.map((row) => `${this.#line(row)}\n`).join(""));
  }

  end(): void {
    for (const note of this.#notes) this.#terminal.write(`${this.#terminal.paint("dim", note)}\n`);
    this.#notes = [];
  }

  /** Leaves out columns, from the last one on: API servers name the more important ones first. */
  #omit(titles: readonly string[]): void {
    const { width } = this.#terminal;
    const optional = [...titles.keys()].filter((column) => !STAYING.includes(titles[column] ?? "")).reverse();
    this.#kept = keptColumns(this.#widths, optional, { width, gap: GAP.length });
    this.#notes = omissionNote(
      titles.filter((_, column) => !this.#kept.includes(column)),
      width,
    );
  }

  #rows({ cluster, page, event }: ClusterPage): string[][] {
    const { columns, rows }: TablePage = page;
    return rows.map((row) => cellsOf(row, { cluster, columns, event }, this.#titles, this.#options));
  }

  #fit(rows: readonly (readonly string[])[]): void {
    for (const row of rows) {
      for (const [column, cell] of row.entries()) {
        this.#widths[column] = Math.max(this.#widths[column] ?? 0, textWidth(cell));
      }
    }
  }

  #line(cells: readonly string[]): string {
    const last = this.#kept.at(-1);
    return this.#kept
      .map((column) => padded(cells[column] ?? "", column === last ? 0 : (this.#widths[column] ?? 0)))
      .join(GAP)
      .trimEnd();
  }
}
