import { CLUSTER_ANNOTATION, GROUP, WHOLE_KEY, WHOLE_VALUE } from "../api/keys.ts";
import type { Job, Stored } from "../api/kubernetes.ts";
import { jobs } from "../kube/resources.ts";
import type { CopiedKind, Fields } from "./kind.ts";

type JobSpec = NonNullable<Job["spec"]>;
export type JobStatus = NonNullable<Job["status"]>;

// Set by the API server that stores the Job (pkg/registry/batch/job/strategy.go, generateSelector).
const GENERATED_LABELS = [
  "batch.kubernetes.io/controller-uid",
  "batch.kubernetes.io/job-name",
  "controller-uid",
  "job-name",
];

/** Selects the host's Jobs that run whole. */
export const WHOLE_SELECTOR: string = `${WHOLE_KEY}=${WHOLE_VALUE}`;

/** A Job that runs whole in a member. Its pod template never changes there: the API server refuses that once it has started. */
export const WHOLE_JOB: CopiedKind<Job> = {
  resource: jobs,
  isOneRun: true,
  propagationPolicy: "Background",
  body: (source) => ({ spec: specInMember(source.spec) }),
  content: ({ spec }) => changeable(spec),
  sources: { labelSelector: WHOLE_SELECTOR },
};

/** Reports whether admission has marked a Job, or the Job template of a CronJob, to run whole. */
export function isMarkedWhole(labels: Readonly<Record<string, string>> | undefined): boolean {
  return labels?.[WHOLE_KEY] === WHOLE_VALUE;
}

/** Returns the member that the host's Job was given to. */
export function memberOfJob({ metadata }: Job): string | undefined {
  return metadata?.annotations?.[CLUSTER_ANNOTATION];
}

/** Reports whether the Job has a final condition. */
export function isFinished({ status }: Job): boolean {
  return status?.conditions?.some(({ type, status: is }) => isFinal(type) && is === "True") ?? false;
}

/** Reports whether a member has had the Job, as far as its status on the host says. A suspended Job may lose its start time. */
export function hasStarted({ status }: Job): boolean {
  const { startTime, conditions = [], active = 0, succeeded = 0, failed = 0 } = status ?? {};
  return startTime !== undefined || conditions.length > 0 || active + succeeded + failed > 0;
}

const LOSS_REASONS = ["ClusterRemoved", "DeletedInMember"] as const;
/** Why Legation itself ended a Job as failed. */
export type LossReason = (typeof LOSS_REASONS)[number];

/** Reports whether Legation ended the Job: a copy that turns up is not wanted any more. */
export function isLost({ status }: Job): boolean {
  const failed = status?.conditions?.find(({ type }) => type === "Failed");
  return failed?.status === "True" && LOSS_REASONS.some((reason) => reason === failed.reason);
}

/**
 * Returns the host's status for the copy's: the same, but for what the host's API server refuses. It wants a reason before each final
 * condition, which members before 1.31 do not write, and keeps the start time of a Job that is not suspended
 * (pkg/apis/batch/validation, validateJobStatus and ValidateJobUpdateStatus).
 */
export function statusOnHost({ spec, status: before }: Job, status: JobStatus): JobStatus {
  const keepsStart = before?.startTime !== undefined && spec?.suspend !== true;
  const conditions = status.conditions && withCriteria(status.conditions);
  return {
    ...status,
    ...(keepsStart ? { startTime: before.startTime } : {}),
    ...(conditions === undefined ? {} : { conditions }),
  };
}

/**
 * Returns the status of a Job whose copy is lost. One that had met its success criteria is complete, since the API server refuses
 * that it fails. `now` is RFC 3339.
 */
export function lostStatus(
  { status }: Stored<Job>,
  { reason, message, now }: { readonly reason: string; readonly message: string; readonly now: string },
): JobStatus {
  const condition = { status: "True", reason, message, lastProbeTime: now, lastTransitionTime: now };
  const conditions = status?.conditions?.filter(({ type }) => type !== "FailureTarget" && !isFinal(type)) ?? [];
  const isMet = conditions.some(({ type, status: is }) => type === "SuccessCriteriaMet" && is === "True");
  const ended = {
    ...status,
    startTime: status?.startTime ?? now,
    active: 0,
    terminating: 0,
    ready: 0,
    uncountedTerminatedPods: {},
  };
  if (isMet) return { ...ended, completionTime: now, conditions: [...conditions, { type: "Complete", ...condition }] };
  const failed = [
    { type: "FailureTarget", ...condition },
    { type: "Failed", ...condition },
  ];
  return { ...ended, conditions: [...conditions, ...failed] };
}

/** The condition that the API server wants before each final one. */
const CRITERIA: ReadonlyMap<string, string> = new Map([
  ["Complete", "SuccessCriteriaMet"],
  ["Failed", "FailureTarget"],
]);

function withCriteria(conditions: NonNullable<JobStatus["conditions"]>): NonNullable<JobStatus["conditions"]> {
  const has = (type: string): boolean => conditions.some((one) => one.type === type && one.status === "True");
  return conditions.flatMap((condition) => {
    const criterion = condition.status === "True" ? CRITERIA.get(condition.type) : undefined;
    return criterion === undefined || has(criterion) ? [condition] : [{ ...condition, type: criterion }, condition];
  });
}

function isFinal(type: string): boolean {
  return CRITERIA.has(type);
}

/** Leaves out what the host's API server generated, what keeps the host's controller away, and the TTL: the host deletes the Job. */
function specInMember(spec: JobSpec | undefined): JobSpec {
  const { managedBy: _, ttlSecondsAfterFinished: __, selector: ___, template = {}, ...rest } = spec ?? { template: {} };
  const { labels, annotations, ...metadata } = template.metadata ?? {};
  const kept = {
    ...(labels === undefined ? {} : { labels: withoutKeys(labels, GENERATED_LABELS) }),
    ...(annotations === undefined ? {} : { annotations: withoutKeys(annotations) }),
  };
  return { ...rest, template: { ...template, metadata: { ...metadata, ...kept } } };
}

/** Returns the fields that the API server lets a running Job change (pkg/apis/batch/validation, validateJobSpecUpdate). */
function changeable(spec: JobSpec | undefined): Fields {
  return {
    "/spec/parallelism": spec?.parallelism,
    "/spec/completions": spec?.completions,
    "/spec/suspend": spec?.suspend,
    "/spec/backoffLimit": spec?.backoffLimit,
    "/spec/activeDeadlineSeconds": spec?.activeDeadlineSeconds,
  };
}

/** Leaves out Legation's own keys, too: no pod of the Job may pose as a delegate. */
function withoutKeys(map: Readonly<Record<string, string>>, keys: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => !key.startsWith(`${GROUP}/`) && !keys.includes(key)));
}
