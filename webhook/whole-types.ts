import { isJsonObject, type JsonObject, valueAt } from "../src/api/json.ts";
import {
  API_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  DELEGATE_ANNOTATION,
  FAILOVER_ANNOTATION,
  GROUP_ANNOTATION,
  GROUP_BY_ANNOTATION,
  MODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  WHOLE_KEY,
  WHOLE_MANAGED_BY,
} from "../src/api/keys.ts";
import type { Maker, WholeType } from "../src/whole/type.ts";
import { wholeTypeOf } from "../src/whole/types.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { annotationProblems, annotationsAt, overrideProblems, readAnnotations, without } from "./read-annotations.ts";
import { denied, patchedTo, type Verdict } from "./responses.ts";
import {
  asksWhole,
  isManaged,
  kindOfBuiltIn,
  managerOf,
  readAtCreation,
  type WholeKind,
  withMarks,
  withoutMarks,
} from "./whole.ts";

// These place single pods.
const OF_PODS = [
  API_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  FAILOVER_ANNOTATION,
  GROUP_ANNOTATION,
  GROUP_BY_ANNOTATION,
  MODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
];

/**
 * Marks an object of a built-in type that members get whole, or the template of one that makes such objects. Undefined when it
 * does not ask for that: the pods of a workload may be delegated one by one.
 */
export function mutateWholeType({ object, oldObject, kind, operation }: AdmissionRequest): Verdict | undefined {
  if (object === undefined) return undefined;
  const found = wholeTypeOf(kind);
  if (found?.maker !== undefined) return mutateMaker(object, found.type, found.maker);
  const isWhole = asksWhole(object);
  const wasWhole = oldObject !== undefined && asksWhole(oldObject);
  if (!isWhole && !wasWhole) return undefined;
  if (found === undefined) return denied(annotationProblems(WHOLE_KEY, [notForKind(kind.kind)]));
  const whole = kindOfBuiltIn(found);
  if (operation === "UPDATE" && isWhole !== wasWhole) {
    return denied(readAtCreation(`a ${kind.kind}`, `delete the ${kind.kind}, and create it anew`));
  }
  const problems = problemsOf(object, found.type, whole);
  if (problems.length > 0) return denied(problems.map((problem) => `metadata: ${problem}`));
  return patchedTo(object, withMarks(object, whole));
}

function mutateMaker(object: ReviewedObject, type: WholeType, maker: Maker): Verdict | undefined {
  const at = `${maker.part.join(".")}.metadata`;
  if (asksWhole(object)) {
    const what = `a ${maker.resource.kind} stays here, and its ${type.resource.kind}s go to members`;
    return denied([`metadata: annotation ${WHOLE_KEY}: ${what}; write the annotation in ${at}.annotations`]);
  }
  const template = valueAt(object, maker.part);
  if (!isJsonObject(template)) return undefined;
  const whole = kindOfBuiltIn({ type, maker });
  if (asksWhole(template)) {
    const problems = problemsOf(template, type, kindOfBuiltIn({ type }));
    if (problems.length > 0) return denied(problems.map((problem) => `${at}: ${problem}`));
    return patchedTo(object, withMarks(object, whole));
  }
  return isManaged(object, whole) ? patchedTo(object, withoutMarks(object, whole)) : undefined;
}

function problemsOf(object: JsonObject, type: WholeType, whole: WholeKind): string[] {
  const { kind } = type.resource;
  // The type's admission policy guards what the controller writes.
  const annotations = without(annotationsAt(object, ["metadata"]) ?? {}, type.recordKeys);
  const { placement, problems } = readAnnotations(annotations);
  const contrary = placement.delegate === false ? [DELEGATE_ANNOTATION] : [];
  const ofPods = [...contrary, ...OF_PODS.filter((key) => annotations[key] !== undefined)];
  const placesPods = `places single pods, and a ${kind} with ${WHOLE_KEY} goes to members itself; remove one of the two`;
  const manager = managerOf(object, whole);
  return [
    ...problems,
    ...ofPods.flatMap((key) => annotationProblems(key, [placesPods])),
    ...type.problemsOf(object, { annotations, placement }).flatMap(([key, each]) => annotationProblems(key, [each])),
    ...overrideProblems(placement, valueAt(object, type.podSpec)),
    ...annotationProblems(WHOLE_KEY, [
      manager !== undefined &&
        manager !== WHOLE_MANAGED_BY &&
        `${manager} manages the ${kind} (${type.managedBy.join(".")}); remove one of the two`,
    ]),
  ];
}

function notForKind(kind: string): string {
  return (
    `this cluster has a controller for every ${kind}, which cannot be told to leave one alone; ` +
    `write ${DELEGATE_ANNOTATION}: "true" instead, and its pods run in members`
  );
}
