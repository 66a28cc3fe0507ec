import { stripVTControlCharacters } from "node:util";
import type { ObjectMeta } from "../../api/kubernetes.ts";
import type { TableColumn, TablePage, TableRow } from "../../kube/tables.ts";

/** The cell of a column that the cluster's version of the type lacks. */
const ABSENT = "<none>";
// Row of the metadata that a table shows beside its own columns.
const NAME_COLUMN = "name";

/** The columns of the printed table, beside those that API servers name. */
export interface ColumnOptions {
  readonly wide: boolean;
  readonly namespaces: boolean;
  readonly showLabels: boolean;
  /** Puts `pod/` before names. */
  readonly kindPrefix: string | undefined;
  readonly events: boolean;
}

export type EventType = "ADDED" | "MODIFIED" | "DELETED";

/** Merges the columns of several versions of a type: each once, by its name, behind the one that precedes it in its table. */
export function mergeColumns(tables: readonly (readonly TableColumn[])[], wide: boolean): readonly string[] {
  const merged: string[] = [];
  for (const columns of tables) {
    let at = 0;
    for (const { name, priority } of columns) {
      if (priority > 0 && !wide) continue;
      const title = name.toUpperCase();
      const known = merged.indexOf(title);
      if (known === -1) merged.splice(at, 0, title);
      at = (known === -1 ? at : known) + 1;
    }
  }
  return merged;
}

export function headerOf(titles: readonly string[], { events, namespaces, showLabels }: ColumnOptions): string[] {
  return [
    ...(events ? ["EVENT"] : []),
    "CLUSTER",
    ...(namespaces ? ["NAMESPACE"] : []),
    ...titles.map(cellText),
    ...(showLabels ? ["LABELS"] : []),
  ];
}

/** Returns the cells of one row under `titles`, one for each title of `headerOf`. */
export function cellsOf(
  row: TableRow,
  {
    cluster,
    columns,
    event = "ADDED",
  }: { readonly cluster: string; readonly columns: readonly TableColumn[]; readonly event?: EventType | undefined },
  titles: readonly string[],
  options: ColumnOptions,
): string[] {
  const { metadata } = row.object;
  const own = titles.map((title) => {
    const index = columns.findIndex(({ name }) => name.toUpperCase() === title);
    if (index === -1) return ABSENT;
    const text = cellText(row.cells[index]);
    const isName = columns[index]?.name.toLowerCase() === NAME_COLUMN;
    return isName && options.kindPrefix !== undefined ? `${options.kindPrefix}/${text}` : text;
  });
  return [
    ...(options.events ? [event] : []),
    cluster,
    ...(options.namespaces ? [cellText(metadata?.namespace)] : []),
    ...own,
    ...(options.showLabels ? [labelsText(metadata?.labels)] : []),
  ];
}

/** Formats a cell on one line, without characters that control the terminal: a member may send any. */
export function cellText(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const end = text.search(/[\n\r\f]/);
  const line = end === -1 ? text : `${text.slice(0, end)}...`;
  return stripVTControlCharacters(line).replace(/[\p{Cc}\p{Bidi_Control}]/gu, "");
}

/** Returns the table of an object that went while its cluster was lost: only its name is still known. */
export function departedTable(columns: readonly TableColumn[], metadata: ObjectMeta): TablePage {
  const cells = columns.map((column, index) => {
    if (column.name.toLowerCase() === NAME_COLUMN) return metadata.name;
    return index === 1 ? "<deleted>" : "";
  });
  return { columns, rows: [{ cells, object: { metadata } }], resourceVersion: "" };
}

function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const all = Object.entries(labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return all.length === 0 ? ABSENT : cellText(all.map(([key, value]) => `${key}=${value}`).join(","));
}
