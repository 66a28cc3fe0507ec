import { isJsonObject } from "../kube/json.ts";

export { isJsonObject, jsonOrNothing } from "../kube/json.ts";

/** Compares JSON values deeply; an absent field equals `undefined`. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => jsonEqual(item, b[index]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  for (const key in left) if (!jsonEqual(left[key], right[key])) return false;
  for (const key in right) if (right[key] !== undefined && left[key] === undefined) return false;
  return true;
}

/** A JSON object with unchecked fields. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns a record by names that others choose: unlike in `{}`, `constructor` is absent until it is written. */
export function byName<T>(record: Readonly<Record<string, T>> = {}): Record<string, T> {
  return Object.assign(Object.create(null), record);
}

/** Returns the value at a path of fields. */
export function valueAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const field of path) value = isJsonObject(value) && Object.hasOwn(value, field) ? value[field] : undefined;
  return value;
}

/** Returns the object with a value at a path of fields. Fields on the way that are no objects become such. */
export function setAt<T extends object>(object: T, [field, ...rest]: readonly string[], value: unknown): T {
  if (field === undefined) return object;
  const inner = isJsonObject(object) ? object[field] : undefined;
  return { ...object, [field]: rest.length === 0 ? value : setAt(isJsonObject(inner) ? inner : {}, rest, value) };
}

/** Returns the path of fields that a JSON pointer names (RFC 6901). */
export function pathOfPointer(pointer: string): string[] {
  const [, ...parts] = pointer.split("/");
  return parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Sorts keys for `JSON.stringify`: API servers may order fields differently. */
export function sortedKeys(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function withoutKeys(
  map: Readonly<Record<string, string>> | undefined,
  isLeftOut: (key: string, value: string) => boolean,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(map ?? {})) if (!isLeftOut(key, value)) kept[key] = value;
  return kept;
}

/** Returns the value without null fields, which an API server treats as absent: the same value if it has none. */
export function withoutNulls<T>(value: T): T {
  if (!hasNullFields(value)) return value;
  if (Array.isArray(value)) return value.map(withoutNulls) as T;
  const fields = Object.entries(value as JsonObject).filter(([, field]) => field !== null);
  return Object.fromEntries(fields.map(([key, field]) => [key, withoutNulls(field)])) as T;
}

function hasNullFields(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasNullFields);
  return isJsonObject(value) && Object.values(value).some((field) => field === null || hasNullFields(field));
}
