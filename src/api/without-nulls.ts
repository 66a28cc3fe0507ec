/** A JSON value without the fields that are null, which to an API server are as good as absent; keys of maps go, too. */
export function withoutNulls<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutNulls) as T;
  if (typeof value !== "object" || value === null || JSON.isRawJSON(value)) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(fields.map(([key, field]) => [key, withoutNulls(field as unknown)])) as T;
}
