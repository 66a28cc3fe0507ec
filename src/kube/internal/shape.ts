import { isJsonObject } from "../json.ts";

/** A check of JSON types. Hand-written because zod would copy every object of every watch. */
export type JsonCheck = (value: unknown) => boolean;

export const text: JsonCheck = (value) => typeof value === "string";
/** Accepts integers beyond 2^53 as well, which the client keeps as text. */
export const number: JsonCheck = (value) => typeof value === "number" || JSON.isRawJSON(value);
/** A 32-bit integer by Kubernetes' schema. */
export const int32: JsonCheck = (value) => typeof value === "number";
export const bool: JsonCheck = (value) => typeof value === "boolean";
/** Excludes raw numbers, which cannot be computed with. */
export const quantity: JsonCheck = (value) => typeof value === "string" || typeof value === "number";

/** Accepts null, which Go writes for an absent required field. */
export function orNull(shape: JsonCheck): JsonCheck {
  return (value) => value === null || shape(value);
}

export function list(item: JsonCheck): JsonCheck {
  return (value) => Array.isArray(value) && value.every((each) => item(each));
}

export function map(item: JsonCheck): JsonCheck {
  return (value) => isJsonObject(value) && Object.values(value).every((each) => item(each));
}

export function fields(
  required: Readonly<Record<string, JsonCheck>>,
  optional: Readonly<Record<string, JsonCheck>> = {},
): JsonCheck {
  const must = Object.entries(required);
  const may = Object.entries(optional);
  return (value) =>
    isJsonObject(value) &&
    must.every(([name, shape]) => shape(value[name])) &&
    may.every(([name, shape]) => value[name] === undefined || shape(value[name]));
}
