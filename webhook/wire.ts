import { isJsonObject, type JsonObject } from "../src/api/json-object.ts";

/** The value at a path of fields; undefined where the path ends early. */
export function valueAt(object: JsonObject, path: readonly string[]): unknown {
  let value: unknown = object;
  for (const field of path) value = isJsonObject(value) ? value[field] : undefined;
  return value;
}

/** The annotations of the metadata at a path, none when there is no such metadata; undefined when they are no strings. */
export function annotationsAt(object: JsonObject, path: readonly string[]): Record<string, string> | undefined {
  const found = valueAt(object, [...path, "annotations"]) ?? {};
  if (!isJsonObject(found)) return undefined;
  const annotations: Record<string, string> = {};
  for (const [key, value] of Object.entries(found)) {
    if (typeof value !== "string") return undefined;
    annotations[key] = value;
  }
  return annotations;
}
