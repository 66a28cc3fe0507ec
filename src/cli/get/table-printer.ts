import type { TablePage } from "../../kube/tables.ts";
import type { Terminal } from "../shared/terminal.ts";
import { type ColumnOptions, cellsOf, type EventType, headerOf, mergeColumns } from "./columns.ts";
import { type ClusterPage, type ListPrinter, typePrefix } from "./printers.ts";

// As kubectl separates columns.
const GAP = "   ";
const LONGEST_EVENT: EventType = "MODIFIED";

/** The looks of the tables. */
export interface TableFormat extends Omit<ColumnOptions, "kindPrefix" | "namespaces"> {
  readonly allNamespaces: boolean;
}

/**
 * Prints one table for each type. Columns are as wide as the first page of each cluster needs, and grow with later rows, since not
 * all rows are known when the first is printed.
 */
export class TablePrinter implements ListPrinter {
  readonly #terminal: Pick<Terminal, "write" | "paint">;
  readonly #format: TableFormat;
  #type = "";
  #titles: readonly string[] = [];
  #options: ColumnOptions;
  #widths: number[] = [];
  /** The header is printed before the next row. */
  #headerDue = false;
  #hasPrinted = false;

  constructor(terminal: Pick<Terminal, "write" | "paint">, format: TableFormat) {
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
      this.#widths = headerOf(titles, this.#options).map(({ length }) => length);
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
      if (this.#hasPrinted) this.#terminal.write("\n");
      const header = this.#line(headerOf(this.#titles, this.#options));
      this.#terminal.write(`${this.#terminal.paint("bold", header)}\n`);
    }
    this.#headerDue = false;
    this.#hasPrinted = true;
    this.#terminal.write(rows.map((row) => `${this.#line(row)}\n`).join(""));
  }

  #rows({ cluster, page, event }: ClusterPage): string[][] {
    const { columns, rows }: TablePage = page;
    return rows.map((row) => cellsOf(row, { cluster, columns, event }, this.#titles, this.#options));
  }

  #fit(rows: readonly (readonly string[])[]): void {
    for (const row of rows) {
      for (const [column, { length }] of row.entries()) {
        if (length > (this.#widths[column] ?? 0)) this.#widths[column] = length;
      }
    }
  }

  #line(cells: readonly string[]): string {
    const last = cells.length - 1;
    return cells
      .map((cell, column) => (column === last ? cell : cell.padEnd(this.#widths[column] ?? 0)))
      .join(GAP)
      .trimEnd();
  }
}
