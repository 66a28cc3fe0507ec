import { metadataShape } from "./internal/object-shapes.ts";
import { isJsonObject } from "./json.ts";
import type { KubeObject } from "./objects.ts";

export interface TableColumn {
  readonly name: string;
  /** Zero for columns that always matter; the others are shown where there is room. */
  readonly priority: number;
}

export interface TableRow {
  readonly cells: readonly unknown[];
  /** The row's object: its metadata, or the whole of it, as requested. */
  readonly object: KubeObject;
}

/** A list or an object as its API server prints it (`Table` of meta.k8s.io/v1). */
export interface TablePage {
  /** Empty in all but the first event of a watch. */
  readonly columns: readonly TableColumn[];
  readonly rows: readonly TableRow[];
  readonly resourceVersion: string;
  /** Token of the next page; absent on the last. */
  readonly continue?: string;
}

/** An event of a watch of tables, with one row. */
export type TableEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly table: TablePage }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

// A server without tables for the resource, as some aggregated ones are, answers with the objects.
const COLUMNS_OF_OBJECTS: readonly TableColumn[] = [
  { name: "Name", priority: 0 },
  { name: "Created At", priority: 0 },
];

/** Returns an answer as a table: a `Table`, a list, or one object. Undefined if it is none of these. */
export function parseTable(body: unknown): TablePage | undefined {
  if (!isJsonObject(body) || !isJsonObject(body.metadata)) return undefined;
  const { resourceVersion, continue: next } = body.metadata;
  const meta = {
    resourceVersion: typeof resourceVersion === "string" ? resourceVersion : "",
    ...(typeof next === "string" && next !== "" ? { continue: next } : {}),
  };
  if (body.kind === "Table") {
    const columns = listOf(body.columnDefinitions).map(columnOf);
    return { columns, rows: listOf(body.rows).map(rowOf), ...meta };
  }
  const isList = Array.isArray(body.items) || (body.items === null && typeof body.kind === "string");
  const objects = isList ? listOf(body.items) : [body];
  return { columns: COLUMNS_OF_OBJECTS, rows: objects.map(rowOfObject), ...meta };
}

function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function columnOf({ name, priority }: Record<string, unknown>): TableColumn {
  return { name: typeof name === "string" ? name : "", priority: typeof priority === "number" ? priority : 0 };
}

function rowOf({ cells, object }: Record<string, unknown>): TableRow {
  return { cells: Array.isArray(cells) ? cells : [], object: objectOf(object) };
}

function rowOfObject(item: Record<string, unknown>): TableRow {
  const object = objectOf(item);
  return { cells: [object.metadata?.name, object.metadata?.creationTimestamp], object };
}

/** Returns the object if its metadata have the promised types, or an empty one. */
function objectOf(value: unknown): KubeObject {
  return isKubeObject(value) ? value : {};
}

function isKubeObject(value: unknown): value is KubeObject {
  return (
    isJsonObject(value) &&
    isJsonObject(value.metadata) &&
    metadataShape({ uid: "", resourceVersion: "", ...value.metadata })
  );
}
