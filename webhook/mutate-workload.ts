import fastJsonPatch from "fast-json-patch";
import { type Annotations, authorAnnotations } from "../src/api/annotations.ts";
import type { DelegatedType } from "../src/api/delegated-type.ts";
import { type DelegationMode, isDelegationWanted } from "../src/api/delegation-mode.ts";
import { isForeignKey } from "../src/api/foreign-annotations.ts";
import { isJsonObject, valueAt } from "../src/api/json.ts";
import { DELEGATE_ANNOTATION, GROUP, OUTDATED_ANNOTATION, WISHES_OF_ANNOTATION } from "../src/api/keys.ts";
import { lastApplied } from "../src/api/last-applied.ts";
import { isOverflowMode } from "../src/api/overflow.ts";
import { isWish, isWishingKind, type WorkloadRef } from "../src/api/workload-wishes.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { type Leftover, leftAnnotations, leftoversOfTemplate, leftoverWarnings } from "./drop-leftovers.ts";
import { idleOverflowWarnings, overflowProblems, overflowWarnings } from "./overflow.ts";
import { ephemeralWarnings, nodeNameProblem, readPodSpec, specWarnings } from "./pod-fields.ts";
import {
  annotationsAt,
  idleWarnings,
  overrideProblems,
  picked,
  placementWarnings,
  readAnnotations,
} from "./read-annotations.ts";
import { allowed, denied, inTurn, patched, type Verdict } from "./responses.ts";
import { recordRestricted } from "./restricted-objects.ts";
import { mutateWholeType } from "./whole-types.ts";
import { withWishMarks } from "./workload-wishes.ts";

/** Paths of a workload kind's annotations: its own and its pod template's. */
interface Shape {
  /** Ordered outside in: values nearer to the template win. */
  readonly outer: readonly (readonly string[])[];
  readonly template: readonly string[];
}

const DAEMON_SET = "DaemonSet";
const PLAIN: Shape = { outer: [["metadata"]], template: ["spec", "template"] };
const SHAPES: Readonly<Record<string, Shape>> = {
  Deployment: PLAIN,
  ReplicaSet: PLAIN,
  StatefulSet: PLAIN,
  ReplicationController: PLAIN,
  Job: PLAIN,
  [DAEMON_SET]: PLAIN,
  // A Job has an owner, so its Job template is part of the CronJob.
  CronJob: {
    outer: [["metadata"], ["spec", "jobTemplate", "metadata"]],
    template: ["spec", "jobTemplate", "spec", "template"],
  },
};

/**
 * Copies the author's annotations from a workload into its pod template, and removals too. The template's own values
 * win. Wishes stay on the workload. Problems of its future pods are refused here. `any`: the namespace's mode is not known.
 */
export function mutateWorkload(
  request: AdmissionRequest,
  mode: DelegationMode | "any",
  types: readonly DelegatedType[] = [],
): Verdict {
  const { object, oldObject, kind, operation } = request;
  const shape = SHAPES[kind.kind];
  if (object === undefined || shape === undefined || (operation !== "CREATE" && operation !== "UPDATE")) {
    return allowed();
  }
  // An owner whose template was changed would replace the object for ever.
  if (object.metadata.ownerReferences?.some(({ controller }) => controller === true)) return allowed();
  if (!isJsonObject(valueAt(object, shape.template))) return allowed();
  // The installed matchConditions exclude these. An operator's own configuration may send them nevertheless.
  if (!isAnnotated(object, oldObject, shape)) return allowed();
  const judged = inTurn(request, withoutLeftovers(request, shape), (cleaned) => judge(cleaned, shape, mode));
  return inTurn(request, judged, (written) =>
    isOfDelegatedPods(written, shape, mode) ? recordRestricted(written, types, shape.template) : allowed(),
  );
}

/** Reports whether the template, which may still change, is of pods that members get one by one. */
function isOfDelegatedPods(request: AdmissionRequest, shape: Shape, mode: DelegationMode | "any"): boolean {
  const { object, oldObject, kind } = request;
  if (object === undefined || kind.kind === DAEMON_SET) return false;
  if (kind.kind === "Job" && oldObject !== undefined && !mayChangeTemplate(oldObject)) return false;
  const annotations = annotationsAt(object, [...shape.template, "metadata"]) ?? {};
  const { placement } = readAnnotations({ ...outerAnnotations(object, shape), ...annotations });
  return placement.whole !== true && isDelegationWanted(placement, mode === "any" ? "all" : mode);
}

/** Drops marks of pods that a workload was made from. The policy legation-whole-jobs guards those of a Job that is there. */
function withoutLeftovers({ object, kind, operation }: AdmissionRequest, { outer, template }: Shape): Verdict {
  if (object === undefined || (kind.kind === "Job" && operation === "UPDATE")) return allowed();
  // A record of outdated wishes comes along with the template that it is about.
  const keepsRecord = ({ name }: Leftover): boolean => name !== `annotation ${OUTDATED_ANNOTATION}`;
  const around = outer.map((path) => ({
    path,
    leftovers: leftAnnotations(object, path.slice(0, -1)).filter(keepsRecord),
  }));
  const parts = [...around, { path: template, leftovers: leftoversOfTemplate(object, template) }];
  return patched(
    parts.flatMap(({ leftovers }) => leftovers.map(({ operation: removal }) => removal)),
    parts.flatMap(({ path, leftovers }) => leftoverWarnings(leftovers, `${path.join(".")}: `)),
  );
}

function judge(request: AdmissionRequest, shape: Shape, known: DelegationMode | "any"): Verdict {
  const mode = known === "any" ? "all" : known;
  const { object, oldObject, kind } = request;
  if (object === undefined) return allowed();
  const whole = mutateWholeType(request);
  if (whole !== undefined) return whole;
  const problems = kind.kind === DAEMON_SET ? daemonSetProblems(object, shape) : problemsOf(object, shape, mode);
  if (problems.length > 0) return denied(problems);
  if (kind.kind === DAEMON_SET) return allowed();
  const path = [...shape.template, "metadata"];
  const current = annotationsAt(object, path) ?? {};
  const isAuthors = (key: string): boolean => isWrittenInTemplate(object, shape, key);
  const workload = wishingWorkload(kind.kind, object);
  const outer = outerAnnotations(object, shape);
  const before = outerAnnotations(oldObject, shape);
  const isCopied = (key: string): boolean => workload === undefined || !isWish(key);
  const merged = merge(current, picked(outer, isCopied), picked(before, isCopied), isAuthors);
  const marks =
    workload &&
    withWishMarks({
      ...{ object, oldObject, workload, mode: known, outer, before, isAuthors, template: merged.annotations },
      oldTemplate: (oldObject && annotationsAt(oldObject, path)) ?? {},
    });
  const patch = fieldPatch(object, path, "annotations", marks?.template ?? merged.annotations);
  if (patch.length > 0 && kind.kind === "Job" && oldObject !== undefined && !mayChangeTemplate(oldObject)) {
    return allowed([...merged.warnings, JOB_KEEPS_TEMPLATE]);
  }
  if (marks !== undefined) {
    for (const field of ["labels", "annotations"] as const)
      patch.push(...fieldPatch(object, ["metadata"], field, marks[field]));
  }
  return patched(patch, [
    ...merged.warnings,
    ...(marks?.warnings ?? []),
    ...merged.removed.map(
      (key) => `${key}: taken off the pod template, too; if it was to stay there, write it there once more`,
    ),
    ...warningsOf(object, shape, marks?.counting ?? merged.annotations, mode),
  ]);
}

/** Returns the workload if its wishes stay on it. One that gets its name after admission cannot be named in its template. */
function wishingWorkload(kind: string, { metadata: { name = "" } }: ReviewedObject): WorkloadRef | undefined {
  return isWishingKind(kind) && name !== "" ? { kind, name } : undefined;
}

const JOB_KEEPS_TEMPLATE =
  "the pod template of a Job cannot change unless the Job is suspended and has never started: its pods keep the annotations " +
  "they have";

/** Reports whether every API server version accepts other annotations in a Job's template (registry/batch/job). */
function mayChangeTemplate(job: ReviewedObject): boolean {
  const started = (valueAt(job, ["status", "startTime"]) ?? valueAt(job, ["status", "active"])) != null;
  return valueAt(job, ["spec", "suspend"]) === true && !started;
}

/** Reports whether the workload has, or had, annotations for Legation. Malformed annotations count. */
function isAnnotated(
  object: ReviewedObject,
  oldObject: ReviewedObject | undefined,
  { outer, template }: Shape,
): boolean {
  const says = (annotations: Annotations | undefined): boolean =>
    annotations === undefined ||
    Object.keys(annotations).some((key) => key.startsWith(`${GROUP}/`) || isForeignKey(key));
  return [object, oldObject].some(
    (each) =>
      each !== undefined && [...outer, [...template, "metadata"]].some((path) => says(annotationsAt(each, path))),
  );
}

/** Returns all problems of the author's annotations, with their places. */
function problemsOf(object: ReviewedObject, { outer, template }: Shape, mode: DelegationMode): string[] {
  const problems: string[] = [];
  const copied: Record<string, string> = {};
  for (const path of [...outer, [...template, "metadata"]]) {
    const annotations = annotationsAt(object, path);
    if (annotations === undefined) {
      problems.push(`${path.join(".")}.annotations: must be a map of strings`);
      continue;
    }
    const isTemplate = path.length > 1 && path !== outer[1];
    // A copied value is reported once, where the author wrote it.
    const own = picked(annotations, (key) => copied[key] !== annotations[key] && key !== OUTDATED_ANNOTATION);
    const { problems: found } = readAnnotations(own);
    problems.push(...found.map((problem) => `${path.join(".")}: ${problem}`));
    if (!isTemplate && own[WISHES_OF_ANNOTATION] !== undefined) {
      problems.push(`${path.join(".")}: annotation ${WISHES_OF_ANNOTATION}: is read on pods alone; remove it`);
    }
    Object.assign(copied, annotations);
  }
  const { placement } = readAnnotations(copied);
  if (problems.length > 0 || !isDelegationWanted(placement, mode)) return problems;
  const written = valueAt(object, [...template, "spec"]);
  const spec = readPodSpec(written);
  // The API server refuses malformed specs itself.
  if (typeof spec === "string") return [];
  const path = template.join(".");
  const ofOverrides = overrideProblems(placement, written).map((problem) => `${path}: ${problem}`);
  if (isOverflowMode(placement, mode)) {
    const ofOverflow = overflowProblems(placement, spec.tolerations ?? []);
    return [...ofOverrides, ...ofOverflow.map((problem) => `${path}: ${problem}`)];
  }
  const problem = nodeNameProblem(spec.nodeName ?? "");
  return problem === undefined ? ofOverrides : [...ofOverrides, `${path}.${problem}`];
}

/** Refuses annotations of a DaemonSet: its pods are never delegated. */
function daemonSetProblems(object: ReviewedObject, { outer, template }: Shape): string[] {
  return [...outer, [...template, "metadata"]].flatMap((path) =>
    Object.entries(authorAnnotations(annotationsAt(object, path)))
      .filter(([key, value]) => key !== DELEGATE_ANNOTATION || value !== "false")
      .map(
        ([key]) =>
          `${path.join(".")}: annotation ${key}: a DaemonSet runs on every node of this cluster and is never delegated; ` +
          "remove the annotation, and create the DaemonSet in the member itself",
      ),
  );
}

function warningsOf(
  object: ReviewedObject,
  { template }: Shape,
  annotations: Annotations,
  mode: DelegationMode,
): string[] {
  const { placement } = readAnnotations(annotations);
  const spec = readPodSpec(valueAt(object, [...template, "spec"]));
  if (!isDelegationWanted(placement, mode))
    return [...placementWarnings(placement), ...idleWarnings(annotations, placement)];
  if (typeof spec === "string") return placementWarnings(placement);
  const ofMode = isOverflowMode(placement, mode)
    ? overflowWarnings(placement, spec)
    : [...idleOverflowWarnings(placement), ...ephemeralWarnings(spec)];
  return [...placementWarnings(placement), ...ofMode, ...specWarnings(spec)];
}

/** Returns the author's annotations outside the template. */
function outerAnnotations(object: ReviewedObject | undefined, { outer }: Shape): Record<string, string> {
  if (object === undefined) return {};
  return Object.assign({}, ...outer.map((path) => authorAnnotations(annotationsAt(object, path))));
}

/**
 * Reports whether the template's annotation is the author's own: a field manager has it, or `kubectl apply` recorded
 * it. Copies of admission are in neither (k8s.io/apiserver, endpoints/handlers).
 */
function isWrittenInTemplate(object: ReviewedObject, { template }: Shape, key: string): boolean {
  const path = [...template, "metadata", "annotations", key];
  const { managedFields } = object.metadata;
  const fields = ["fieldsV1", ...path.map((field) => `f:${field}`)];
  const isOwned = (entry: unknown): boolean => valueAt(entry, fields) !== undefined;
  if (Array.isArray(managedFields) && managedFields.some(isOwned)) return true;
  return valueAt(lastApplied(object.metadata.annotations), path) !== undefined;
}

/** Returns the wanted annotations of the template. `before`: the annotations around it until this update. */
function merge(
  current: Annotations,
  written: Annotations,
  before: Annotations,
  isAuthors: (key: string) => boolean,
): {
  readonly annotations: Annotations;
  readonly warnings: readonly string[];
  /** Keys that go with those around the template. */
  readonly removed: readonly string[];
} {
  const annotations = { ...current };
  const warnings: string[] = [];
  for (const [key, value] of Object.entries(written)) {
    const inTemplate = current[key];
    // A value that stood outside until now was copied from there, so it follows.
    if (inTemplate === undefined || (inTemplate === before[key] && !isAuthors(key))) annotations[key] = value;
    else if (inTemplate !== value) {
      warnings.push(`${key}: the pod template says ${JSON.stringify(inTemplate)}, and that counts for its pods`);
    }
  }
  const removed = Object.entries(before)
    .filter(([key, value]) => !Object.hasOwn(written, key) && current[key] === value && !isAuthors(key))
    .map(([key]) => key);
  for (const key of removed) delete annotations[key];
  return { annotations, warnings, removed };
}

/** Returns the operations that give a map of an object's metadata these values. */
function fieldPatch(
  object: ReviewedObject,
  path: readonly string[],
  field: "annotations" | "labels",
  wanted: Readonly<Record<string, string>>,
): fastJsonPatch.Operation[] {
  const metadata = valueAt(object, path);
  const root = `/${path.join("/")}`;
  const current = isJsonObject(metadata) && isJsonObject(metadata[field]) ? metadata[field] : undefined;
  const patch = fastJsonPatch.compare({ [field]: current ?? {} }, { [field]: wanted });
  if (patch.length === 0) return [];
  const made: fastJsonPatch.Operation[] = [];
  if (!isJsonObject(metadata)) made.push({ op: "add", path: root, value: { [field]: {} } });
  else if (current === undefined) made.push({ op: "add", path: `${root}/${field}`, value: {} });
  return [...made, ...patch.map((operation) => ({ ...operation, path: root + operation.path }))];
}
