import type { DelegatedType } from "../src/api/delegated-type.ts";
import { type JsonObject, pathOfPointer, setAt, valueAt } from "../src/api/json.ts";
import { WHOLE_FINALIZER, WHOLE_KEY, WHOLE_MANAGED_BY, WHOLE_VALUE } from "../src/api/keys.ts";
import { isOfServices } from "../src/api/service-fields.ts";
import { wholeTypeOf } from "../src/whole/types.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { annotationProblems } from "./read-annotations.ts";

/** Returns the DelegatedType of a group and kind; `unknown` while they are not read. */
export type FindType = (group: string, kind: string) => DelegatedType | "none" | "unknown";

/** An object and its state until this update, if it is one. */
export type ReviewedChange = Pick<AdmissionRequest, "oldObject" | "namespace"> & { readonly object: ReviewedObject };

/** A kind of objects that members get whole, as far as admission marks them. */
export interface WholeKind {
  /** Path of the part that members get: the Job template of a CronJob. Empty: they get the object itself. */
  readonly part: readonly string[];
  /** Path in that part of the field that tells controllers of this cluster to leave it alone. Undefined: they run nothing. */
  readonly managedBy: readonly string[] | undefined;
  readonly isOfServices: boolean;
}

const UNMANAGED: WholeKind = { part: [], managedBy: undefined, isOfServices: false };

export function wholeKindOf(kind: AdmissionRequest["kind"], find: FindType): WholeKind {
  const builtIn = wholeTypeOf(kind);
  if (builtIn !== undefined) return kindOfBuiltIn(builtIn);
  const type = find(kind.group, kind.kind);
  return typeof type === "object" ? kindOfType(type) : UNMANAGED;
}

export function kindOfBuiltIn({ type, maker }: NonNullable<ReturnType<typeof wholeTypeOf>>): WholeKind {
  return { ...UNMANAGED, managedBy: type.managedBy, part: maker?.part ?? [] };
}

export function kindOfType(type: DelegatedType): WholeKind {
  const { managedBy } = type.spec;
  const path = managedBy === undefined ? undefined : pathOfPointer(managedBy);
  return { ...UNMANAGED, managedBy: path, isOfServices: isOfServices(type) };
}

/** Reports whether the author gives the object, or the Jobs of a template, to members whole. */
export function asksWhole(object: JsonObject): boolean {
  const value = valueAt(object, ["metadata", "annotations", WHOLE_KEY]) ?? undefined;
  return value !== undefined && value !== "false";
}

/** Marks an object for the controller, and for controllers of this cluster, which leave it alone. */
export function withMarks(object: ReviewedObject, { part, managedBy }: WholeKind): ReviewedObject {
  const labeled = withLabel(object, WHOLE_VALUE, part);
  const managed = managedBy === undefined ? labeled : setAt(labeled, [...part, ...managedBy], WHOLE_MANAGED_BY);
  // A CronJob itself stays. Its Jobs get their finalizer from the controller.
  return part.length === 0 ? finalized(managed) : managed;
}

/** Takes the marks away from an object that has no copies. */
export function withoutMarks(object: ReviewedObject, { part, managedBy }: WholeKind): ReviewedObject {
  const unlabeled = withLabel(object, undefined, part);
  return managedBy === undefined ? unlabeled : setAt(unlabeled, [...part, ...managedBy], undefined);
}

export function labelOf(object: ReviewedObject | undefined): string | undefined {
  return object?.metadata.labels?.[WHOLE_KEY];
}

export function withLabel(
  object: ReviewedObject,
  value: string | undefined,
  part: readonly string[] = [],
): ReviewedObject {
  return setAt(object, [...part, "metadata", "labels", WHOLE_KEY], value);
}

/** Keeps the object until its copies are confirmed gone. */
export function finalized(object: ReviewedObject): ReviewedObject {
  const { finalizers = [] } = object.metadata;
  return isFinalized(object) ? object : setAt(object, ["metadata", "finalizers"], [...finalizers, WHOLE_FINALIZER]);
}

/** Reports whether the object is kept until its copies are gone. */
export function isFinalized(object: ReviewedObject | undefined): boolean {
  return object?.metadata.finalizers?.includes(WHOLE_FINALIZER) === true;
}

/** Returns what runs the object, by the field of its kind. Undefined: a controller of this cluster does. */
export function managerOf(object: JsonObject, { part, managedBy }: WholeKind): unknown {
  return managedBy === undefined ? undefined : (valueAt(object, [...part, ...managedBy]) ?? undefined);
}

/** Reports whether the object tells controllers of this cluster to leave it alone. */
export function isManaged(object: JsonObject, kind: WholeKind): boolean {
  return managerOf(object, kind) === WHOLE_MANAGED_BY;
}

/** Refuses a change of mind: what runs an object is set when it is created. */
export function readAtCreation(object: string, remedy: string): string[] {
  return annotationProblems(WHOLE_KEY, [
    `is read when ${object} is created, since what runs it never changes; ${remedy}`,
  ]);
}
