import fastJsonPatch from "fast-json-patch";
import { authorAnnotations } from "../src/api/annotations.ts";
import { type DelegatedType, replicasOf } from "../src/api/delegated-type.ts";
import { jsonEqual, pathOfPointer, setAt, valueAt } from "../src/api/json.ts";
import {
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTERS_ANNOTATION,
  GROUP,
  MEMBERS_ANNOTATION,
  NOT_WHOLE_VALUE,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
  OVERRIDES_ANNOTATION,
  PREFERENCES_ANNOTATION,
  WHOLE_FINALIZER,
  WHOLE_KEY,
  WHOLE_MANAGED_BY,
  WHOLE_VALUE,
} from "../src/api/keys.ts";
import { objectOverrideProblems } from "../src/api/object-overrides.ts";
import { isOfServices } from "../src/api/service-fields.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { asksWhole } from "./mutate-whole.ts";
import { readAnnotations } from "./read-annotations.ts";
import { allowed, denied, patched, type Verdict } from "./responses.ts";
import { serviceProblems, takingBackProblem, withLoadBalancerClass } from "./whole-services.ts";

/** Returns the DelegatedType of a group and kind; `unknown` while they are not read. */
export type FindType = (group: string, kind: string) => DelegatedType | "none" | "unknown";

const READ: ReadonlySet<string> = new Set([
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTERS_ANNOTATION,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
  OVERRIDES_ANNOTATION,
  WHOLE_KEY,
]);

/** Marks an object that members get as it is, and one that they are not to have any more. */
export function mutateObject({ object, oldObject, kind, namespace }: AdmissionRequest, find: FindType): Verdict {
  if (object === undefined) return allowed();
  if (object.metadata.deletionTimestamp !== undefined) return keepLabel(object, oldObject);
  const wasAsking = oldObject !== undefined && asksWhole(oldObject);
  const type = find(kind.group, kind.kind);
  if (!asksWhole(object)) return unmarked({ object, oldObject }, type);
  const isServed = typeof type === "object" && type.metadata.deletionTimestamp === undefined;
  // An object from before keeps its annotation when its type goes.
  if (!isServed) return wasAsking ? allowed() : denied([notServed(kind, type)]);
  const { managedBy } = type.spec;
  // The type may have changed since the author wrote the object.
  const known =
    oldObject !== undefined && wasAsking ? contentProblems({ object: oldObject, oldObject, namespace }, type) : [];
  const misfits = contentProblems({ object, oldObject, namespace }, type).filter((problem) => !known.includes(problem));
  if (wasAsking && sameAnnotations(object, oldObject)) {
    if (misfits.length > 0) return denied(misfits);
    // Others than its author change it, too: the garbage collector, controllers. An object that was not marked stays so.
    if (oldObject.metadata.labels?.[WHOLE_KEY] !== WHOLE_VALUE) return allowed();
    return marked(object, type, isManaged(oldObject, type) ? managedBy : undefined);
  }
  const problems = [...problemsOf(object, type), ...misfits, ...managerProblems({ object, oldObject }, managedBy)];
  if (problems.length > 0) return denied(problems);
  return marked(object, type, managedBy);
}

/** Reports whether the object tells controllers of the host to leave it alone. An object older than its type's field does not. */
function isManaged(object: ReviewedObject, { spec: { managedBy } }: DelegatedType): boolean {
  return managedBy !== undefined && valueAt(object, pathOfPointer(managedBy)) === WHOLE_MANAGED_BY;
}

/** Returns why members cannot get the object as its author wrote it. */
function contentProblems(change: Parameters<typeof serviceProblems>[0], type: DelegatedType): string[] {
  return [...objectOverrideProblems(change.object, type), ...(isOfServices(type) ? serviceProblems(change) : [])];
}

/** Marks the object, and tells controllers of the host by the field `managedBy`, if given, to leave it alone. */
function marked(object: ReviewedObject, type: DelegatedType, managedBy: string | undefined): Verdict {
  const { labels, finalizers = [] } = object.metadata;
  const metadata = {
    ...object.metadata,
    labels: { ...labels, [WHOLE_KEY]: WHOLE_VALUE },
    finalizers: finalizers.includes(WHOLE_FINALIZER) ? finalizers : [...finalizers, WHOLE_FINALIZER],
  };
  const whole = { ...object, metadata };
  const managed = managedBy === undefined ? whole : setAt(whole, pathOfPointer(managedBy), WHOLE_MANAGED_BY);
  return patched(fastJsonPatch.compare(object, isOfServices(type) ? withLoadBalancerClass(managed) : managed));
}

/** Keeps the label of an object that is being deleted, by which the controller sees it. The API server takes no new finalizers. */
function keepLabel(object: ReviewedObject, oldObject: ReviewedObject | undefined): Verdict {
  const { labels, finalizers = [] } = object.metadata;
  const before = oldObject?.metadata.labels?.[WHOLE_KEY];
  if (before === undefined || labels?.[WHOLE_KEY] !== undefined || !finalizers.includes(WHOLE_FINALIZER))
    return allowed();
  const metadata = { ...object.metadata, labels: { ...labels, [WHOLE_KEY]: before } };
  return patched(fastJsonPatch.compare(object, { ...object, metadata }));
}

function sameAnnotations(object: ReviewedObject, oldObject: ReviewedObject): boolean {
  const ofLegation = ({ metadata: { annotations = {} } }: ReviewedObject): object =>
    Object.fromEntries(Object.entries(annotations).filter(([key]) => key.startsWith(`${GROUP}/`)));
  return jsonEqual(ofLegation(object), ofLegation(oldObject));
}

/** Returns why the object cannot be told to its controller on the host as Legation's. */
function managerProblems(
  { object, oldObject }: { readonly object: ReviewedObject; readonly oldObject: ReviewedObject | undefined },
  managedBy: string | undefined,
): string[] {
  if (managedBy === undefined) return [];
  const manager = valueAt(object, pathOfPointer(managedBy)) ?? undefined;
  if (manager !== undefined && manager !== WHOLE_MANAGED_BY) {
    return [`annotation ${WHOLE_KEY}: ${managedBy} says that ${manager} manages the object; remove one of the two`];
  }
  const isLate = oldObject !== undefined && valueAt(oldObject, pathOfPointer(managedBy)) !== WHOLE_MANAGED_BY;
  return isLate
    ? [
        `annotation ${WHOLE_KEY}: is read when the object is created, since what runs it never changes; delete it, and create it anew`,
      ]
    : [];
}

/** The controller takes the object back from members first, and then removes its finalizer and label. */
function unmarked(
  { object, oldObject }: { readonly object: ReviewedObject; readonly oldObject: ReviewedObject | undefined },
  type: DelegatedType | "none" | "unknown",
): Verdict {
  const { labels = {}, finalizers = [] } = object.metadata;
  const problem = typeof type === "object" && isOfServices(type) ? takingBackProblem(object) : undefined;
  if (problem !== undefined) return denied([problem]);
  const isFinalized = finalizers.includes(WHOLE_FINALIZER);
  const isHeld = isFinalized || oldObject?.metadata.finalizers?.includes(WHOLE_FINALIZER) === true;
  if (isHeld && typeof type === "object" && isManaged(object, type)) {
    return denied([
      `annotation ${WHOLE_KEY}: is read when the object is created, since what runs it never changes; keep it, or delete the object`,
    ]);
  }
  if (labels[WHOLE_KEY] === undefined && !isHeld) return allowed();
  const { [WHOLE_KEY]: _, ...others } = labels;
  const metadata = isHeld
    ? {
        ...object.metadata,
        labels: { ...others, [WHOLE_KEY]: NOT_WHOLE_VALUE },
        finalizers: isFinalized ? finalizers : [...finalizers, WHOLE_FINALIZER],
      }
    : { ...object.metadata, labels: others };
  return patched(fastJsonPatch.compare(object, { ...object, metadata }));
}

function problemsOf(object: ReviewedObject, type: DelegatedType): string[] {
  const { metadata } = object;
  // The policy legation-whole-objects guards the member's name; overrides are read beside the type.
  const { [CLUSTER_ANNOTATION]: _, [OVERRIDES_ANNOTATION]: __, ...annotations } = metadata.annotations ?? {};
  const isDivided = annotations[PREFERENCES_ANNOTATION] !== undefined && type.spec.replicas !== undefined;
  const isRead = (key: string): boolean => READ.has(key) || (isDivided && key === PREFERENCES_ANNOTATION);
  const others = Object.keys(authorAnnotations(annotations)).filter((key) => !isRead(key));
  // The controller's record is on every object that an author changes, and is in manifests that were read from one.
  const leftOut = new Set([...others, MEMBERS_ANNOTATION]);
  const known = Object.fromEntries(Object.entries(annotations).filter(([key]) => !leftOut.has(key)));
  const { placement, problems } = readAnnotations(known);
  return [
    ...problems,
    ...(isDivided ? divisionProblems(object, type, placement.preferences?.rebalance) : []),
    ...others.map(
      (key) =>
        `annotation ${key}: is not read on an object with ${WHOLE_KEY}, which goes to members as it is; ` +
        `remove it, or write one of ${[...READ].join(", ")}`,
    ),
  ];
}

/** Returns why the object's replicas cannot be divided. */
function divisionProblems(object: ReviewedObject, type: DelegatedType, rebalance: boolean | undefined): string[] {
  const isWithout = replicasOf(object, type) === undefined;
  return [
    ...(isWithout
      ? [
          `annotation ${PREFERENCES_ANNOTATION}: the object has no number at ${type.spec.replicas}; write one, or remove it`,
        ]
      : []),
    ...(rebalance === true
      ? [
          `annotation ${PREFERENCES_ANNOTATION}: rebalance moves pods, and copies have their shares at all times; remove it`,
        ]
      : []),
  ];
}

function notServed({ group, kind }: AdmissionRequest["kind"], type: DelegatedType | "none" | "unknown"): string {
  const name = group === "" ? kind : `${kind} of ${group}`;
  if (type === "unknown")
    return `annotation ${WHOLE_KEY}: Legation has not read its DelegatedTypes yet; try again soon`;
  const why = type === "none" ? "no DelegatedType names it" : `DelegatedType ${type.metadata.name} is being deleted`;
  return `annotation ${WHOLE_KEY}: no member gets a ${name}, since ${why}; an operator creates one, and \`kubectl get delegatedtypes\` lists them`;
}
