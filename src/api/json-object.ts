/** A JSON object, as it came. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** True for a JSON object: neither null nor a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
