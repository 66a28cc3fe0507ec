import type { ComponentChildren } from "preact";

/** A row of a table: a cell for each column, and what tells it from other rows. */
export interface PageRow {
  readonly key: string;
  readonly cells: readonly ComponentChildren[];
}

/** Returns the indexes of the columns in which a row has something. */
export function filledColumns(columns: readonly string[], rows: readonly PageRow[]): number[] {
  return [...columns.keys()].filter((index) => rows.some(({ cells }) => cells[index] !== ""));
}
