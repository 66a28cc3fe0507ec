import { CLUSTER_ANNOTATION, WHOLE_KEY, WHOLE_VALUE } from "../api/keys.ts";
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

/** A Job that runs whole in a member. Its pod template never changes there: the API server refuses that once it has started. */
export const WHOLE_JOB: CopiedKind<Job> = {
  resource: jobs,
  isOneRun: true,
  propagationPolicy: "Background",
  body: (source) => ({ spec: specInMember(source.spec) }),
  content: ({ spec }) => changeable(spec),
  sources: { labelSelector: `${WHOLE_KEY}=${WHOLE_VALUE}` },
};

/** Returns the member that the host's Job was given to. */
export function memberOfJob({ metadata }: Job): string | undefined {
  return metadata?.annotations?.[CLUSTER_ANNOTATION];
}

/** Reports whether the Job has a final condition. */
export function isFinished({ status }: Job): boolean {
  return status?.conditions?.some(({ type, status: is }) => isFinal(type) && is === "True") ?? false;
}

/** Reports whether a member has run the Job, as far as its status on the host says. */
export function hasStarted({ status }: Job): boolean {
  return status?.startTime !== undefined;
}

/** Returns the status of a Job that failed for a reason of the member's. `now` is RFC 3339. */
export function failedStatus(
  { status }: Stored<Job>,
  { reason, message, now }: { readonly reason: string; readonly message: string; readonly now: string },
): JobStatus {
  const condition = { status: "True", reason, message, lastProbeTime: now, lastTransitionTime: now };
  const others = status?.conditions?.filter(({ type }) => type !== "FailureTarget" && type !== "Failed") ?? [];
  return {
    ...status,
    startTime: status?.startTime ?? now,
    active: 0,
    terminating: 0,
    ready: 0,
    uncountedTerminatedPods: {},
    // The API server wants both (pkg/apis/batch/validation, validateJobStatus).
    conditions: [...others, { type: "FailureTarget", ...condition }, { type: "Failed", ...condition }],
  };
}

function isFinal(type: string): boolean {
  return type === "Complete" || type === "Failed";
}

/** Leaves out what the host's API server generated, what keeps the host's controller away, and the TTL: the host deletes the Job. */
function specInMember(spec: JobSpec | undefined): JobSpec {
  const { managedBy: _, ttlSecondsAfterFinished: __, selector, template = {}, ...rest } = spec ?? { template: {} };
  if (rest.manualSelector === true) return { ...rest, ...(selector === undefined ? {} : { selector }), template };
  const labels = Object.entries(template.metadata?.labels ?? {}).filter(([key]) => !GENERATED_LABELS.includes(key));
  return { ...rest, template: { ...template, metadata: { ...template.metadata, labels: Object.fromEntries(labels) } } };
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
