import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { isJsonObject, type JsonObject, jsonEqual, setAt, valueAt } from "../../../src/api/json.ts";
import type { ObjectMeta } from "../../../src/api/kubernetes.ts";
import { asStored, type StoredObject } from "./object-store.ts";

type Entry = NonNullable<ObjectMeta["managedFields"]>[number];

/** A field manager, and the kind of its write. */
export interface Manager {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly subresource?: string | undefined;
  readonly time: string;
}

/** Values by the JSON of their path. Lists are values: the server's merging of lists by key is left out. */
type Leaves = ReadonlyMap<string, unknown>;

/** Returns the object after a server-side apply, or the fields that other managers own, which force takes from them. */
export function appliedTo(
  before: StoredObject,
  by: Manager,
  { wanted, force }: { readonly wanted: AnyObject; readonly force: boolean },
): { readonly object: StoredObject } | { readonly conflicts: readonly { manager: string; field: string }[] } {
  const entries = before.metadata.managedFields ?? [];
  const leaves = leavesOf(wanted, by.subresource);
  const there = leavesOf(before);
  const others = entries.filter((one) => !isSame(one, by)).map((entry) => ({ entry, paths: pathsOf(entry) }));
  const conflicts = [...leaves].flatMap(([path, value]) => {
    const owner = others.find(({ paths }) => paths.has(path));
    if (owner === undefined || jsonEqual(there.get(path), value)) return [];
    return [{ path, manager: owner.entry.manager ?? "", field: `.${keysOf(path).join(".")}` }];
  });
  if (conflicts.length > 0 && !force) return { conflicts };
  let after: JsonObject = before;
  for (const [path, value] of leaves) after = setAt(after, keysOf(path), value);
  for (const path of pathsOf(entries.find((one) => isSame(one, by)))) {
    const isOthers = others.some(({ paths }) => paths.has(path));
    if (!leaves.has(path) && !isOthers) after = without(after, keysOf(path));
  }
  const taken = new Set(conflicts.map(({ path }) => path));
  const managedFields = [
    ...others.flatMap(({ entry, paths }) =>
      entryOf(
        entry,
        [...paths].filter((path) => !taken.has(path)),
      ),
    ),
    ...entryOf({ ...by, apiVersion: before.apiVersion }, [...leaves.keys()]),
  ];
  const { metadata } = asStored(after);
  return {
    object: { ...asStored(after), metadata: { ...metadata, managedFields: sameTimes(entries, managedFields) } },
  };
}

/** Returns the managers after a write that was no apply: the writer owns what it changed. */
export function managersAfter(before: StoredObject | undefined, after: AnyObject, by: Manager): Entry[] {
  const entries = before?.metadata.managedFields ?? [];
  const told = after.metadata?.managedFields;
  // A client may write the managers themselves; an empty list takes all of them away.
  if (before !== undefined && told !== undefined && !jsonEqual(told, entries)) return told;
  const [old, made] = [before === undefined ? new Map() : leavesOf(before), leavesOf(after)];
  const changed = new Set([...made].filter(([path, value]) => !jsonEqual(old.get(path), value)).map(([path]) => path));
  const mine = pathsOf(entries.find((one) => isSame(one, by)));
  const others = entries
    .filter((one) => !isSame(one, by))
    .flatMap((one) =>
      entryOf(
        one,
        [...pathsOf(one)].filter((path) => !changed.has(path) && made.has(path)),
      ),
    );
  const own = [...new Set([...mine, ...changed])].filter((path) => made.has(path));
  return sameTimes(entries, [...others, ...entryOf({ ...by, apiVersion: after.apiVersion }, own)]);
}

/** Returns values by the JSON of their path. Of an apply to a subresource, only that part counts. */
function leavesOf(object: AnyObject, subresource?: string): Leaves {
  const leaves = new Map<string, unknown>();
  const visit = (value: unknown, path: readonly string[]): void => {
    if (!isJsonObject(value)) {
      leaves.set(JSON.stringify(path), value);
      return;
    }
    for (const [key, one] of Object.entries(value)) if (one !== undefined) visit(one, [...path, key]);
  };
  const { metadata = {}, apiVersion: _, kind: __, ...rest } = object;
  visit(subresource === "status" ? { status: rest.status } : rest, []);
  const { labels, annotations, finalizers } = metadata;
  visit({ metadata: { labels, annotations, finalizers } }, []);
  return leaves;
}

function isSame(entry: Entry, { manager, operation, subresource }: Manager): boolean {
  return entry.manager === manager && entry.operation === operation && entry.subresource === subresource;
}

/** Returns an entry as the server writes it; none without a field. */
function entryOf(entry: Entry | (Manager & { apiVersion: string | undefined }), paths: readonly string[]): Entry[] {
  if (paths.length === 0) return [];
  let fieldsV1: JsonObject = {};
  for (const path of paths) {
    const fields = keysOf(path).map((key) => `f:${key}`);
    if (valueAt(fieldsV1, fields) === undefined) fieldsV1 = setAt(fieldsV1, fields, {});
  }
  const { manager, operation, apiVersion, time, subresource } = entry;
  return [
    {
      ...(manager === undefined ? {} : { manager }),
      ...(operation === undefined ? {} : { operation }),
      ...(apiVersion === undefined ? {} : { apiVersion }),
      ...(time === undefined ? {} : { time }),
      fieldsType: "FieldsV1",
      fieldsV1,
      ...(subresource === undefined ? {} : { subresource }),
    },
  ];
}

/** Keeps the time of an entry whose fields are the same: a write that changes nothing must not look like a change. */
function sameTimes(before: readonly Entry[], after: readonly Entry[]): Entry[] {
  return after.map((entry) => {
    const { time } = before.find((one) => jsonEqual({ ...one, time: "" }, { ...entry, time: "" })) ?? entry;
    return time === undefined ? entry : { ...entry, time };
  });
}

/** Returns the paths of an entry's leaves. */
function pathsOf(entry: Entry | undefined): Set<string> {
  const paths = new Set<string>();
  const visit = (fields: JsonObject, path: readonly string[]): void => {
    const inner = Object.entries(fields).filter(([key]) => key.startsWith("f:"));
    if (inner.length === 0 && path.length > 0) paths.add(JSON.stringify(path));
    for (const [key, value] of inner) if (isJsonObject(value)) visit(value, [...path, key.slice(2)]);
  };
  if (isJsonObject(entry?.fieldsV1)) visit(entry.fieldsV1, []);
  return paths;
}

function keysOf(path: string): string[] {
  const keys: unknown = JSON.parse(path);
  return Array.isArray(keys) ? keys.map(String) : [];
}

/** Returns the object without the value at a path of fields. */
function without(object: JsonObject, [first = "", ...rest]: readonly string[]): JsonObject {
  const { [first]: inner, ...others } = object;
  if (rest.length === 0 || !isJsonObject(inner)) return others;
  return { ...others, [first]: without(inner, rest) };
}
