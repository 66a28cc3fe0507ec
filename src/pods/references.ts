import type { NameRule } from "../api/delegated-type.ts";
import { isJsonObject, type JsonObject, pathOfPointer } from "../api/json.ts";

/** A name that a pod has somewhere. */
export interface Reference {
  readonly name: string;
  /** The object with the field. */
  readonly within: JsonObject;
  /** The outermost item of a list around it: a volume, a container. */
  readonly item?: JsonObject;
}

export interface PodParts {
  readonly metadata?: object | undefined;
}

export type FindReferences = (pod: PodParts) => readonly Reference[];

/** Compiles a rule to what finds the names. Empty ones are left out. */
export function referencesBy({ field, label, annotation }: NameRule): FindReferences {
  if (field !== undefined) {
    const path = pathOfPointer(field);
    return (pod) => referencesAt({ ...pod }, path);
  }
  const path = label === undefined ? ["annotations", annotation ?? ""] : ["labels", label];
  return ({ metadata }) => referencesAt({ ...metadata }, path);
}

function referencesAt(
  value: unknown,
  [field = "", ...rest]: readonly string[],
  item?: JsonObject,
): readonly Reference[] {
  if (field === "*") {
    if (Array.isArray(value)) {
      const items: readonly unknown[] = value;
      return items.flatMap((one) => referencesAt(one, rest, item ?? (isJsonObject(one) ? one : undefined)));
    }
    return isJsonObject(value) ? Object.values(value).flatMap((one) => referencesAt(one, rest, item)) : [];
  }
  if (!isJsonObject(value)) return [];
  const inside = value[field];
  if (rest.length > 0) return inside === undefined ? [] : referencesAt(inside, rest, item);
  return typeof inside === "string" && inside !== ""
    ? [{ name: inside, within: value, ...(item === undefined ? {} : { item }) }]
    : [];
}
