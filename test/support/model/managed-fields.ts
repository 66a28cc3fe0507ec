import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { isJsonObject, type JsonObject, jsonEqual, setAt } from "../../../src/api/json.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";

/** An entry of `metadata.managedFields`; the fields are paths of leaves, each as JSON. */
export interface Manager {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly fieldsV1: JsonObject;
}

/** Returns the object after a server-side apply, or the fields that other managers own, which force takes from them. */
export function appliedTo(
  before: Stored<AnyObject>,
  by: string,
  { wanted, force }: { readonly wanted: AnyObject; readonly force: boolean },
): { readonly object: Stored<AnyObject> } | { readonly conflicts: readonly string[] } {
  const managers = managersOf(before);
  const leaves = leavesOf(wanted);
  const there = leavesOf(before);
  const others = managers.filter((one) => one.manager !== by || one.operation !== "Apply");
  const isOthers = (path: string): boolean => others.some(({ fieldsV1 }) => path in fieldsV1);
  const conflicts = [...leaves].filter(([path, value]) => isOthers(path) && !jsonEqual(there.get(path), value));
  if (conflicts.length > 0 && !force) return { conflicts: conflicts.map(([path]) => `.${keysOf(path).join(".")}`) };
  const taken = new Set(conflicts.map(([path]) => path));
  let after: JsonObject = { ...before };
  for (const [path, value] of leaves) after = setAt(after, keysOf(path), value);
  const own = managers.find((one) => !others.includes(one));
  for (const path of Object.keys(own?.fieldsV1 ?? {})) {
    if (!leaves.has(path) && !isOthers(path)) after = without(after, keysOf(path));
  }
  const fieldsV1 = Object.fromEntries([...leaves.keys()].map((path) => [path, {}]));
  const managedFields = [...withoutPaths(others, taken), { manager: by, operation: "Apply", fieldsV1 }];
  const metadata = { ...(after.metadata as object), managedFields };
  return { object: { ...after, metadata } as unknown as Stored<AnyObject> };
}

function withoutPaths(managers: readonly Manager[], paths: ReadonlySet<string>): Manager[] {
  return managers.flatMap((one) => {
    const kept = Object.entries(one.fieldsV1).filter(([path]) => !paths.has(path));
    return kept.length === 0 ? [] : [{ ...one, fieldsV1: Object.fromEntries(kept) }];
  });
}

/** Returns the managers of an object's fields. */
function managersOf({ metadata }: Stored<AnyObject>): readonly Manager[] {
  return (metadata.managedFields ?? []) as unknown as readonly Manager[];
}

function keysOf(path: string): string[] {
  return JSON.parse(path) as string[];
}

/** Returns values by the JSON of their path; lists are values. */
export function leavesOf(object: AnyObject): Map<string, unknown> {
  const leaves = new Map<string, unknown>();
  const visit = (value: unknown, path: readonly string[]): void => {
    if (!isJsonObject(value)) {
      leaves.set(JSON.stringify(path), value);
      return;
    }
    for (const [key, one] of Object.entries(value)) if (one !== undefined) visit(one, [...path, key]);
  };
  const { metadata = {}, apiVersion: _, kind: __, ...rest } = object;
  visit(rest, []);
  const { labels, annotations, finalizers } = metadata;
  visit({ metadata: { labels, annotations, finalizers } }, []);
  return leaves;
}

/** Gives fields to a manager that wrote them without an apply, and takes them from all others. */
export function moveTo(
  managers: readonly Manager[],
  by: string,
  changed: ReadonlyMap<string, unknown>,
  all?: ReadonlySet<string>,
): Manager[] {
  const isMine = (one: Manager): boolean => one.manager === by && one.operation === "Update";
  const kept = managers.map((one) => ({
    ...one,
    fieldsV1: Object.fromEntries(
      Object.entries(one.fieldsV1).filter(([path]) => (isMine(one) || !changed.has(path)) && (all?.has(path) ?? true)),
    ),
  }));
  const own = kept.find(isMine)?.fieldsV1 ?? {};
  const fieldsV1 = { ...own, ...Object.fromEntries([...changed.keys()].map((path) => [path, {}])) };
  const others = kept.filter((one) => !isMine(one) && Object.keys(one.fieldsV1).length > 0);
  return Object.keys(fieldsV1).length === 0 ? others : [...others, { manager: by, operation: "Update", fieldsV1 }];
}

/** Returns the object without the value at a path of fields. */
export function without(object: JsonObject, [first = "", ...rest]: readonly string[]): JsonObject {
  const { [first]: inner, ...others } = object;
  if (rest.length === 0 || !isJsonObject(inner)) return others;
  return { ...others, [first]: without(inner, rest) };
}
