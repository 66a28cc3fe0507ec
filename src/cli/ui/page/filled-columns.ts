import type { ComponentChildren } from "preact";

/** The columns of a table, in their order: the name of each, and its cell for a row. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => ComponentChildren>>;

/** Returns the columns in which a row has something, each with the cells of all rows. */
export function filledColumns<Row>(
  columns: Columns<Row>,
  rows: readonly Row[],
): { readonly name: string; readonly cells: readonly ComponentChildren[] }[] {
  return Object.entries(columns)
    .map(([name, cell]) => ({ name, cells: rows.map(cell) }))
    .filter(({ cells }) => cells.some((each) => each !== ""));
}
