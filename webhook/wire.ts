import { isJsonObject, type JsonObject } from "../src/api/json.ts";

/** Returns the value at a path of fields. */
export function valueAt(object: JsonObject, path: readonly string[]): unknown {
  let value: unknown = object;
  for (const field of path) value = isJsonObject(value) ? value[field] : undefined;
  return value;
}

/** Returns the annotations at a path, empty if there are none. Undefined if they are no map of strings. */
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
