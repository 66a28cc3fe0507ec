import fastJsonPatch from "fast-json-patch";
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
  WHOLE_FINALIZER,
  WHOLE_KEY,
  WHOLE_MANAGED_BY,
  WHOLE_VALUE,
} from "../src/api/keys.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { overrideProblems, readAnnotations } from "./read-annotations.ts";
import { denied, patched, type Verdict } from "./responses.ts";

/** A Job, or the Job template of a CronJob. */
interface JobLike extends JsonObject {
  readonly metadata?: ReviewedObject["metadata"];
}

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
export function mutateWhole({ object, oldObject, kind, operation }: AdmissionRequest): Verdict | undefined {
  if (object === undefined) return undefined;
  if (kind.kind === "CronJob") return mutateCronJob(object);
  const isWhole = asksWhole(object);
  const wasWhole = oldObject !== undefined && asksWhole(oldObject);
  if (!isWhole && !wasWhole) return undefined;
  if (kind.kind !== "Job") return denied([notForKind(kind.kind)]);
  if (operation === "UPDATE" && isWhole !== wasWhole) {
    return denied([
      `annotation ${WHOLE_KEY}: is read when a Job is created, since what runs it never changes; ` +
        "delete the Job, and create it anew",
    ]);
  }
  const problems = problemsOf(object);
  if (problems.length > 0) return denied(problems.map((problem) => `metadata: ${problem}`));
  const { labels, finalizers = [] } = object.metadata;
  const marked = {
    ...withMarks(object),
    metadata: {
      ...object.metadata,
      labels: { ...labels, [WHOLE_KEY]: WHOLE_VALUE },
      finalizers: finalizers.includes(WHOLE_FINALIZER) ? finalizers : [...finalizers, WHOLE_FINALIZER],
    },
  };
  return patched(fastJsonPatch.compare(object, marked));
}

/** The CronJob controller copies labels, annotations and spec from the template; a Job's finalizer comes from Legation's controller. */
function mutateCronJob(cronJob: ReviewedObject): Verdict | undefined {
  if (asksWhole(cronJob)) return denied([WRITE_IN_JOB_TEMPLATE]);
  const { spec } = cronJob;
  if (!isJsonObject(spec) || !isJsonObject(spec.jobTemplate)) return undefined;
  const template: JobLike = spec.jobTemplate;
  const { metadata = {} } = template;
  if (asksWhole(template)) {
    const problems = problemsOf(template);
    if (problems.length > 0) return denied(problems.map((problem) => `spec.jobTemplate.metadata: ${problem}`));
    const marked = {
      ...withMarks(template),
      metadata: { ...metadata, labels: { ...metadata.labels, [WHOLE_KEY]: WHOLE_VALUE } },
    };
    return patched(fastJsonPatch.compare(cronJob, { ...cronJob, spec: { ...spec, jobTemplate: marked } }));
  }
  if (managerOf(template) !== WHOLE_MANAGED_BY) return undefined;
  const { [WHOLE_KEY]: _, ...labels } = metadata.labels ?? {};
  const { managedBy: __, ...jobSpec } = isJsonObject(template.spec) ? template.spec : {};
  const unmarked = { ...template, spec: jobSpec, metadata: { ...metadata, labels } };
  return patched(fastJsonPatch.compare(cronJob, { ...cronJob, spec: { ...spec, jobTemplate: unmarked } }));
}

/** Reports whether the author gives the object to members whole. */
export function asksWhole({ metadata }: JobLike): boolean {
  const value = metadata?.annotations?.[WHOLE_KEY];
  return value !== undefined && value !== "false";
}

function problemsOf(job: JobLike): string[] {
  // The policy legation-whole-jobs guards what the controller writes.
  const { [CLUSTER_ANNOTATION]: _, [SHARES_ANNOTATION]: __, ...annotations } = job.metadata?.annotations ?? {};
  const { placement, problems } = readAnnotations(annotations);
  const contrary = placement.delegate === false ? [DELEGATE_ANNOTATION] : [];
  const ofPods = [...contrary, ...OF_PODS.filter((key) => annotations[key] !== undefined)].map(
    (key) =>
      `annotation ${key}: places single pods, and a Job with ${WHOLE_KEY} goes to members itself; remove one of the two`,
  );
  const manager = managerOf(job);
  const ofManager =
    manager === undefined || manager === WHOLE_MANAGED_BY
      ? []
      : [`annotation ${WHOLE_KEY}: ${manager} manages the Job (spec.managedBy); remove one of the two`];
  const ofSelector =
    valueAt(job, ["spec", "manualSelector"]) === true
      ? [`annotation ${WHOLE_KEY}: the member chooses the Job's selector; remove spec.manualSelector and spec.selector`]
      : [];
  return [
    ...problems,
    ...ofSelector,
    ...ofPods,
    ...divisionProblems(placement, job),
    ...overrideProblems(placement, valueAt(job, ["spec", "template", "spec"])),
    ...ofManager,
  ];
}

/** Returns why the Job cannot be divided. The API server has defaulted the fields of a Job, and not those of a Job template. */
function divisionProblems({ preferences }: RequestedPlacement, job: JobLike): string[] {
  if (preferences === undefined) return [];
  const at = (field: string): unknown => valueAt(job, ["spec", field]) ?? undefined;
  const undivided = "or remove the annotation, and the Job goes to one member";
  const problems = [
    at("completionMode") === "Indexed" &&
      `the shares of an Indexed Job would each begin with index 0; write spec.completionMode: NonIndexed, ${undivided}`,
    at("completions") === undefined &&
      at("parallelism") !== undefined &&
      `divides spec.completions, which is not set, so that each share would end with its own first success; write it, ${undivided}`,
    preferences.rebalance && "rebalance: the completions of a share never move to another member; remove the field",
  ];
  return problems
    .filter((problem) => problem !== false)
    .map((problem) => `annotation ${PREFERENCES_ANNOTATION}: ${problem}`);
}

function withMarks(job: JobLike): JobLike {
  return { ...job, spec: { ...(isJsonObject(job.spec) ? job.spec : {}), managedBy: WHOLE_MANAGED_BY } };
}

function managerOf(job: JobLike): unknown {
  return valueAt(job, ["spec", "managedBy"]) ?? undefined;
}

function notForKind(kind: string): string {
  return (
    `annotation ${WHOLE_KEY}: this cluster has a controller for every ${kind}, which cannot be told to leave one alone; ` +
    `write ${DELEGATE_ANNOTATION}: "true" instead, and its pods run in members`
  );
}
