import { authorAnnotations } from "../src/api/annotations.ts";
import { type DelegatedType, replicasOf } from "../src/api/delegated-type.ts";
import { jsonEqual } from "../src/api/json.ts";
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
  WHOLE_KEY,
  WHOLE_MANAGED_BY,
  WHOLE_VALUE,
} from "../src/api/keys.ts";
import { objectOverrideProblems } from "../src/api/object-overrides.ts";
import { isOfServices } from "../src/api/service-fields.ts";
import { wholeTypeOf } from "../src/whole/types.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { annotationProblems, picked, readAnnotations, without } from "./read-annotations.ts";
import { allowed, denied, patchedTo, type Verdict } from "./responses.ts";
import {
  asksWhole,
  type FindType,
  finalized,
  isFinalized,
  isManaged,
  kindOfType,
  labelOf,
  managerOf,
  type ReviewedChange,
  readAtCreation,
  type WholeKind,
  withLabel,
  withMarks,
} from "./whole.ts";
import { serviceProblems, takingBackProblems, withLoadBalancerClass } from "./whole-services.ts";
import { mutateWholeType } from "./whole-types.ts";

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
export function mutateObject(request: AdmissionRequest, find: FindType): Verdict {
  const { object, oldObject, kind, namespace } = request;
  if (object === undefined) return allowed();
  const change = { object, oldObject, namespace };
  if (object.metadata.deletionTimestamp !== undefined) return keepLabel(change);
  if (wholeTypeOf(kind) !== undefined) return mutateWholeType(request) ?? allowed();
  const type = find(kind.group, kind.kind);
  if (!asksWhole(object)) return unmarked(change, typeof type === "object" ? type : undefined);
  const before = oldObject !== undefined && asksWhole(oldObject) ? oldObject : undefined;
  const isServed = typeof type === "object" && type.metadata.deletionTimestamp === undefined;
  // An object from before keeps its annotation when its type goes.
  if (!isServed)
    return before === undefined ? denied(annotationProblems(WHOLE_KEY, [notServed(kind, type)])) : allowed();
  if (type.spec.follows !== undefined)
    return before === undefined ? denied(annotationProblems(WHOLE_KEY, [FOLLOWS])) : allowed();
  const whole = kindOfType(type);
  // The type may have changed since the author wrote the object.
  const known = before === undefined ? [] : contentProblems({ ...change, object: before }, type);
  const misfits = contentProblems(change, type).filter((problem) => !known.includes(problem));
  if (before !== undefined && sameAnnotations(object, before)) {
    if (misfits.length > 0) return denied(misfits);
    // Others than its author change it, too: the garbage collector, controllers. An object that was not marked stays so.
    if (labelOf(before) !== WHOLE_VALUE) return allowed();
    // An object older than its type's field keeps the controller that it has.
    return marked(object, isManaged(before, whole) ? whole : { ...whole, managedBy: undefined });
  }
  const problems = [...problemsOf(object, type), ...misfits, ...managerProblems(change, type)];
  return problems.length > 0 ? denied(problems) : marked(object, whole);
}

/** Returns why members cannot get the object as its author wrote it. */
function contentProblems(change: ReviewedChange, type: DelegatedType): string[] {
  const ofService = isOfServices(type) ? serviceProblems(change) : [];
  return [...objectOverrideProblems(change.object, type), ...ofService];
}

function marked(object: ReviewedObject, kind: WholeKind): Verdict {
  const whole = withMarks(object, kind);
  return patchedTo(object, kind.isOfServices ? withLoadBalancerClass(whole) : whole);
}

/** Keeps the label of an object that is being deleted, by which the controller sees it. The API server takes no new finalizers. */
function keepLabel({ object, oldObject }: ReviewedChange): Verdict {
  const before = labelOf(oldObject);
  if (before === undefined || labelOf(object) !== undefined || !isFinalized(object)) return allowed();
  return patchedTo(object, withLabel(object, before));
}

function sameAnnotations(object: ReviewedObject, oldObject: ReviewedObject): boolean {
  const ofLegation = ({ metadata: { annotations = {} } }: ReviewedObject): object =>
    picked(annotations, (key) => key.startsWith(`${GROUP}/`));
  return jsonEqual(ofLegation(object), ofLegation(oldObject));
}

/** Returns why the object cannot be told to its controller on the host as Legation's. */
function managerProblems({ object, oldObject }: ReviewedChange, type: DelegatedType): string[] {
  const kind = kindOfType(type);
  const manager = managerOf(object, kind);
  if (manager !== undefined && manager !== WHOLE_MANAGED_BY) {
    const says = `${type.spec.managedBy} says that ${manager} manages the object; remove one of the two`;
    return annotationProblems(WHOLE_KEY, [says]);
  }
  const isLate = kind.managedBy !== undefined && oldObject !== undefined && !isManaged(oldObject, kind);
  return isLate ? readAtCreation("the object", "delete it, and create it anew") : [];
}

/** The controller takes the object back from members first, and then removes its finalizer and label. */
function unmarked({ object, oldObject }: ReviewedChange, type: DelegatedType | undefined): Verdict {
  const kind = type === undefined ? undefined : kindOfType(type);
  const problems = kind?.isOfServices === true ? takingBackProblems(object) : [];
  if (problems.length > 0) return denied(problems);
  if (!isFinalized(object) && !isFinalized(oldObject)) {
    return labelOf(object) === undefined ? allowed() : patchedTo(object, withLabel(object, undefined));
  }
  if (kind !== undefined && isManaged(object, kind)) {
    return denied(readAtCreation("the object", "keep it, or delete the object"));
  }
  return patchedTo(object, finalized(withLabel(object, NOT_WHOLE_VALUE)));
}

function problemsOf(object: ReviewedObject, type: DelegatedType): string[] {
  const { metadata } = object;
  // The policy legation-whole-objects guards the member's name; overrides are read beside the type.
  const annotations = without(metadata.annotations ?? {}, [CLUSTER_ANNOTATION, OVERRIDES_ANNOTATION]);
  const isDivided = annotations[PREFERENCES_ANNOTATION] !== undefined && type.spec.replicas !== undefined;
  const isRead = (key: string): boolean => READ.has(key) || (isDivided && key === PREFERENCES_ANNOTATION);
  const others = Object.keys(authorAnnotations(annotations)).filter((key) => !isRead(key));
  // The controller's record is on every object that an author changes, and is in manifests that were read from one.
  const { placement, problems } = readAnnotations(without(annotations, [...others, MEMBERS_ANNOTATION]));
  return [
    ...problems,
    ...annotationProblems(PREFERENCES_ANNOTATION, [
      isDivided &&
        replicasOf(object, type) === undefined &&
        `the object has no number at ${type.spec.replicas}; write one, or remove it`,
      isDivided &&
        placement.preferences?.rebalance === true &&
        "rebalance moves pods, and copies have their shares at all times; remove it",
    ]),
    ...others.flatMap((key) => annotationProblems(key, [NOT_READ])),
  ];
}

const FOLLOWS = "objects of this type go to members with the pods that name them; remove it";

const NOT_READ =
  `is not read on an object with ${WHOLE_KEY}, which goes to members as it is; ` +
  `remove it, or write one of ${[...READ].join(", ")}`;

function notServed({ group, kind }: AdmissionRequest["kind"], type: ReturnType<FindType>): string {
  if (type === "unknown") return "Legation has not read its DelegatedTypes yet; try again soon";
  const name = group === "" ? kind : `${kind} of ${group}`;
  const why = type === "none" ? "no DelegatedType names it" : `DelegatedType ${type.metadata.name} is being deleted`;
  return `no member gets a ${name}, since ${why}; an operator creates one, and \`kubectl get delegatedtypes\` lists them`;
}
