import { withoutKeys } from "../../api/json.ts";
import { GROUP, WHOLE_KEY, WHOLE_VALUE } from "../../api/keys.ts";
import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import { PODSET_LABEL } from "../../api/kueue.ts";
import type { CopiedKind, Fields } from "../../copies/kind.ts";
import { isOfQueue, withoutKueue } from "../../copies/queued-objects.ts";
import { jobs } from "../../kube/resources.ts";

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

export function isMarkedTrue(status: JobStatus | undefined, ...types: readonly string[]): boolean {
  return status?.conditions?.some(({ type, status: is }) => types.includes(type) && is === "True") ?? false;
}

export function isFinished({ status }: Pick<Job, "status">): boolean {
  return isMarkedTrue(status, ...FINAL_CONDITIONS.keys());
}

/** Reports whether a member has had the Job, as far as its status on the host says. A suspended Job may lose its start time. */
export function hasStarted({ status }: Pick<Job, "status">): boolean {
  const { startTime, conditions = [], active = 0, succeeded = 0, failed = 0 } = status ?? {};
  return startTime !== undefined || conditions.some(isOfController) || active + succeeded + failed > 0;
}

/** Reports whether Kueue has still to admit the Job: the flavor that it gives says which members may have it. */
export function isQueued(job: Job): boolean {
  return job.spec?.suspend === true && isOfQueue(job);
}

/** Returns the Job without Kueue's keys if a queue of the host has it: a Kueue of the member would queue it again. */
export function outsideQueue(job: Stored<Job>): Stored<Job> {
  const { metadata, spec } = job;
  const template: Pod = spec?.template ?? {};
  const isAdmitted = template.metadata?.labels?.[PODSET_LABEL] !== undefined;
  if (spec === undefined || (!isAdmitted && !isQueued(job))) return job;
  return {
    ...job,
    metadata: { ...metadata, ...withoutKueue(metadata) },
    spec: {
      ...spec,
      template: { ...spec.template, metadata: { ...template.metadata, ...withoutKueue(template.metadata) } },
    },
  };
}

/** Reports whether the Job is suspended, has no pods, and had none that ended. */
export function isIdle({ spec, status = {} }: Job): boolean {
  const { active = 0, terminating = 0, succeeded = 0, failed = 0 } = status;
  const isSuspended = spec?.suspend === true && isMarkedTrue(status, "Suspended");
  return isSuspended && active + terminating + succeeded + failed === 0;
}

export function waitsInMember(job: Job, copy: Job): boolean {
  return job.spec?.suspend !== true && copy.spec?.suspend === true;
}

/** Reports whether the Job controller writes conditions of this type. Others are left to the clients that set them. */
export function isOfController({ type }: { readonly type: string }): boolean {
  return CONTROLLER_CONDITIONS.has(type);
}

const LOSS_REASONS = ["ClusterRemoved", "DeletedInMember", "OtherShareFailed"] as const;
/** Why Legation itself ended a Job, or a share of one, as failed. */
export type LossReason = (typeof LOSS_REASONS)[number];

/** Reports whether Legation ended the Job: a copy that turns up is not wanted any more. */
export function isLost({ status }: Pick<Job, "status">): boolean {
  const failed = status?.conditions?.find(({ type }) => type === "Failed");
  return failed?.status === "True" && LOSS_REASONS.some((reason) => reason === failed.reason);
}

/** Final conditions, each with the one that the API server wants before it. */
export const FINAL_CONDITIONS: ReadonlyMap<string, string> = new Map([
  ["Complete", "SuccessCriteriaMet"],
  ["Failed", "FailureTarget"],
]);
// k8s.io/api/batch/v1, JobConditionType.
const CONTROLLER_CONDITIONS: ReadonlySet<string> = new Set([...[...FINAL_CONDITIONS].flat(), "Suspended"]);

/** Leaves out what the host's API server generated, what keeps the host's controller away, and the TTL: the host deletes the Job. */
function specInMember(spec: JobSpec | undefined): JobSpec {
  const { managedBy: _, ttlSecondsAfterFinished: __, selector: ___, template = {}, ...rest } = spec ?? { template: {} };
  const { labels, annotations, ...metadata } = template.metadata ?? {};
  const kept = {
    ...(labels === undefined
      ? {}
      : { labels: withoutKeys(labels, (key) => isLegations(key) || GENERATED_LABELS.includes(key)) }),
    ...(annotations === undefined ? {} : { annotations: withoutKeys(annotations, isLegations) }),
  };
  return { ...rest, template: { ...template, metadata: { ...metadata, ...kept } } };
}

/** Reports whether the API server takes another pod template now (pkg/registry/batch/job, shouldAllowMutablePodTemplate). */
export function takesTemplate({ spec, status }: Pick<Job, "spec" | "status">): boolean {
  const hasEnded = status?.startTime === undefined || isMarkedTrue(status, "Suspended");
  return spec?.suspend === true && hasEnded && (status?.active ?? 0) === 0;
}

/** Returns the fields of the pod template that a suspended Job may change (pkg/apis/batch/validation, validatePodTemplateUpdate). */
export function templateFields(spec: JobSpec | undefined): Fields {
  const { nodeSelector, affinity, tolerations, schedulingGates, ...pod } = spec?.template?.spec ?? { containers: [] };
  const resources = (["containers", "initContainers"] as const).flatMap((list) =>
    (pod[list] ?? []).map((container, index) => [
      `/spec/template/spec/${list}/${index}/resources`,
      container.resources,
    ]),
  );
  return {
    "/spec/template/spec/nodeSelector": nodeSelector,
    "/spec/template/spec/affinity": affinity,
    "/spec/template/spec/tolerations": tolerations,
    "/spec/template/spec/schedulingGates": schedulingGates,
    ...Object.fromEntries(resources),
  };
}

/** Returns the fields that the API server lets a Job change (pkg/apis/batch/validation, validateJobSpecUpdate). */
function changeable(spec: JobSpec | undefined): Fields {
  return {
    ...templateFields(spec),
    "/spec/parallelism": spec?.parallelism,
    "/spec/completions": spec?.completions,
    "/spec/suspend": spec?.suspend,
    "/spec/backoffLimit": spec?.backoffLimit,
    "/spec/activeDeadlineSeconds": spec?.activeDeadlineSeconds,
  };
}

/** No pod of the Job may pose as a delegate. */
function isLegations(key: string): boolean {
  return key.startsWith(`${GROUP}/`);
}
