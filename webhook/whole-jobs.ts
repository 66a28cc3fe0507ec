import type { RequestedPlacement } from "../src/api/annotations.ts";
import { isJsonObject, type JsonObject, valueAt } from "../src/api/json.ts";
import {
  API_ANNOTATION,
  CLUSTER_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  DELEGATE_ANNOTATION,
  FAILOVER_ANNOTATION,
  GROUP_ANNOTATION,
  GROUP_BY_ANNOTATION,
  MODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  PREFERENCES_ANNOTATION,
  SHARES_ANNOTATION,
  WHOLE_KEY,
  WHOLE_MANAGED_BY,
} from "../src/api/keys.ts";
import { ELASTIC_JOB_ANNOTATION } from "../src/api/kueue.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { annotationProblems, annotationsAt, overrideProblems, readAnnotations, without } from "./read-annotations.ts";
import { denied, patchedTo, type Verdict } from "./responses.ts";
import {
  asksWhole,
  isManaged,
  MARKED_JOB,
  MARKED_JOB_TEMPLATE,
  managerOf,
  readAtCreation,
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
const WRITE_IN_JOB_TEMPLATE =
  `metadata: annotation ${WHOLE_KEY}: a CronJob stays here, and its Jobs go to members; write the annotation in ` +
  "spec.jobTemplate.metadata.annotations";

/** Marks a Job that runs whole in a member, or the Job template of a CronJob. Undefined when the workload's pods are delegated one by one. */
export function mutateWholeJob({ object, oldObject, kind, operation }: AdmissionRequest): Verdict | undefined {
  if (object === undefined) return undefined;
  if (kind.kind === "CronJob") return mutateCronJob(object);
  const isWhole = asksWhole(object);
  const wasWhole = oldObject !== undefined && asksWhole(oldObject);
  if (!isWhole && !wasWhole) return undefined;
  if (kind.kind !== "Job") return denied(annotationProblems(WHOLE_KEY, [notForKind(kind.kind)]));
  if (operation === "UPDATE" && isWhole !== wasWhole) {
    return denied(readAtCreation("a Job", "delete the Job, and create it anew"));
  }
  const problems = problemsOf(object);
  if (problems.length > 0) return denied(problems.map((problem) => `metadata: ${problem}`));
  return patchedTo(object, withMarks(object, MARKED_JOB));
}

/** The CronJob controller copies labels, annotations and spec from the template; a Job's finalizer comes from Legation's controller. */
function mutateCronJob(cronJob: ReviewedObject): Verdict | undefined {
  if (asksWhole(cronJob)) return denied([WRITE_IN_JOB_TEMPLATE]);
  const template = valueAt(cronJob, MARKED_JOB_TEMPLATE.part);
  if (!isJsonObject(template)) return undefined;
  if (asksWhole(template)) {
    const problems = problemsOf(template);
    if (problems.length > 0) return denied(problems.map((problem) => `spec.jobTemplate.metadata: ${problem}`));
    return patchedTo(cronJob, withMarks(cronJob, MARKED_JOB_TEMPLATE));
  }
  if (!isManaged(cronJob, MARKED_JOB_TEMPLATE)) return undefined;
  return patchedTo(cronJob, withoutMarks(cronJob, MARKED_JOB_TEMPLATE));
}

function problemsOf(job: JsonObject): string[] {
  // The policy legation-whole-jobs guards what the controller writes.
  const annotations = without(annotationsAt(job, ["metadata"]) ?? {}, [CLUSTER_ANNOTATION, SHARES_ANNOTATION]);
  const { placement, problems } = readAnnotations(annotations);
  const contrary = placement.delegate === false ? [DELEGATE_ANNOTATION] : [];
  const ofPods = [...contrary, ...OF_PODS.filter((key) => annotations[key] !== undefined)];
  const manager = managerOf(job, MARKED_JOB);
  return [
    ...problems,
    ...annotationProblems(WHOLE_KEY, [
      valueAt(job, ["spec", "manualSelector"]) === true &&
        "the member chooses the Job's selector; remove spec.manualSelector and spec.selector",
      annotations[ELASTIC_JOB_ANNOTATION] === "true" &&
        `Kueue starts the pods of an elastic Job one by one (${ELASTIC_JOB_ANNOTATION}), and those of a whole Job are in members; remove one of the two`,
    ]),
    ...ofPods.flatMap((key) => annotationProblems(key, [PLACES_PODS])),
    ...annotationProblems(PREFERENCES_ANNOTATION, divisionProblems(placement, job)),
    ...overrideProblems(placement, valueAt(job, ["spec", "template", "spec"])),
    ...annotationProblems(WHOLE_KEY, [
      manager !== undefined &&
        manager !== WHOLE_MANAGED_BY &&
        `${manager} manages the Job (spec.managedBy); remove one of the two`,
    ]),
  ];
}

const PLACES_PODS = `places single pods, and a Job with ${WHOLE_KEY} goes to members itself; remove one of the two`;

/** Returns why the Job cannot be divided. The API server has defaulted the fields of a Job, and not those of a Job template. */
function divisionProblems({ preferences }: RequestedPlacement, job: JsonObject): (string | false)[] {
  if (preferences === undefined) return [];
  const at = (field: string): unknown => valueAt(job, ["spec", field]) ?? undefined;
  const undivided = "or remove the annotation, and the Job goes to one member";
  return [
    at("completionMode") === "Indexed" &&
      `the shares of an Indexed Job would each begin with index 0; write spec.completionMode: NonIndexed, ${undivided}`,
    at("completions") === undefined &&
      at("parallelism") !== undefined &&
      `divides spec.completions, which is not set, so that each share would end with its own first success; write it, ${undivided}`,
    preferences.rebalance && "rebalance: the completions of a share never move to another member; remove the field",
  ];
}

function notForKind(kind: string): string {
  return (
    `this cluster has a controller for every ${kind}, which cannot be told to leave one alone; ` +
    `write ${DELEGATE_ANNOTATION}: "true" instead, and its pods run in members`
  );
}
