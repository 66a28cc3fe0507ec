import type { DelegatedType } from "../api/delegated-type.ts";
import { type PodParts, referencesBy } from "./references.ts";

/** The policy legation-restricted-objects asks for no more types: the API server limits what an expression may cost. */
export const MOST_RESTRICTED_TYPES = 8;
// What kubectl and the policy split the record by is no part of an object's name.
const OBJECT_NAME = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;

/**
 * Returns the objects of restricted types that a pod names, as its annotation has them: `plural.group/name/name`, with commas
 * between types. Empty if there are none.
 */
export function restrictedObjects(pod: PodParts, types: readonly Pick<DelegatedType, "metadata" | "spec">[]): string {
  const found = types.flatMap(({ metadata: { name: type = "" }, spec: { follows } }) => {
    if (follows?.restricted !== true) return [];
    const names = follows.names.flatMap((rule) => referencesBy(rule)(pod).map(({ name }) => name));
    const valid = [...new Set(names)].filter((name) => OBJECT_NAME.test(name)).sort();
    return valid.length === 0 ? [] : [[type, ...valid].join("/")];
  });
  return found.sort().join(",");
}

/** Reports whether a pod's record has the object: then the API server asked the pod's author for the verb. */
export function isRecorded(record: string, type: string, name: string): boolean {
  return record.split(",").some((entry) => {
    const [of, ...names] = entry.split("/");
    return of === type && names.includes(name);
  });
}
