/** A JSON object, as it came. */
export type WireObject = Readonly<Record<string, unknown>>;

/** True for a JSON object: neither null nor a list. */
export function isRecord(value: unknown): value is WireObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at a path of fields; undefined where the path ends early. */
export function valueAt(object: WireObject, path: readonly string[]): unknown {
  let value: unknown = object;
  for (const field of path) value = isRecord(value) ? value[field] : undefined;
  return value;
}

/** The annotations of the metadata at a path, none when there is no such metadata; undefined when they are no strings. */
export function annotationsAt(object: WireObject, path: readonly string[]): Record<string, string> | undefined {
  const found = valueAt(object, [...path, "annotations"]) ?? {};
  if (!isRecord(found)) return undefined;
  const annotations: Record<string, string> = {};
  for (const [key, value] of Object.entries(found)) {
    if (typeof value !== "string") return undefined;
    annotations[key] = value;
  }
  return annotations;
}
