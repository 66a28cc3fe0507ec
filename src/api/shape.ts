import { isJsonObject } from "./json-object.ts";

/**
 * Says whether a value of JSON has the types that the code relies on. By hand, where everything else that comes from
 * outside passes zod: every object of every watch goes through it, and zod would copy each of them.
 */
export type Shape = (value: unknown) => boolean;

export const text: Shape = (value) => typeof value === "string";
/** Accepts integers beyond 2^53 as well, which the client keeps as text. */
export const number: Shape = (value) => typeof value === "number" || JSON.isRawJSON(value);
/** An integer of 32 bits, by Kubernetes' own schema: safe to reckon with. */
export const int32: Shape = (value) => typeof value === "number";
export const flag: Shape = (value) => typeof value === "boolean";
/** Kubernetes takes numbers for quantities, and writes strings: what the client keeps as text is none, and cannot be reckoned with. */
export const quantity: Shape = (value) => typeof value === "string" || typeof value === "number";

/** Go writes what is not there as null where a field is not marked as optional. */
export function orNull(shape: Shape): Shape {
  return (value) => value === null || shape(value);
}

/** Every item of a list. */
export function list(item: Shape): Shape {
  return (value) => Array.isArray(value) && value.every((each) => item(each));
}

/** Every value of an object, whatever its keys. */
export function map(item: Shape): Shape {
  return (value) => isJsonObject(value) && Object.values(value).every((each) => item(each));
}

/** An object that has these fields, and those only of these types; others it may have are not looked at. */
export function fields(
  required: Readonly<Record<string, Shape>>,
  optional: Readonly<Record<string, Shape>> = {},
): Shape {
  const must = Object.entries(required);
  const may = Object.entries(optional);
  return (value) =>
    isJsonObject(value) &&
    must.every(([name, shape]) => shape(value[name])) &&
    may.every(([name, shape]) => value[name] === undefined || shape(value[name]));
}
