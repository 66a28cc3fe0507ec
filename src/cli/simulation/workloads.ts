import { z } from "zod";
import { defined } from "../../api/defined.ts";
import type { Job, KubeObject, ObjectMeta, PodSpec, Stored } from "../../api/kubernetes.ts";
import { amounts } from "../../api/quantity.ts";
import {
  apiVersionOf,
  cronJobs,
  deployments,
  jobs,
  namespaced,
  pods,
  type Resource,
  replicaSets,
  replicationControllers,
  statefulSets,
} from "../../kube/resources.ts";
import { podSpec } from "../../pods/spec-shape.ts";
import type { ClaimSpec, ClaimTemplate } from "../../simulation/claims.ts";
import { isMarkedWhole } from "../../whole/jobs/kind.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";

const source = z.looseObject({ kind: z.string(), name: z.string() });

/** A claim's spec. The API server keeps a data source under both of its names. */
const claimSpec: z.ZodType<ClaimSpec> = z
  .looseObject({
    volumeName: z.string().exactOptional(),
    dataSource: source.exactOptional(),
    dataSourceRef: source.exactOptional(),
    resources: z.looseObject({ requests: amounts.exactOptional() }).exactOptional(),
  })
  .transform(({ resources: _, ...spec }) =>
    spec.dataSource === undefined ? spec : { dataSourceRef: spec.dataSource, ...spec },
  );

const claimFields = z.looseObject({ spec: claimSpec.optional() });

/** Reads the spec of a claim of a manifest. Throws a `Failure` that names a wrong field. */
export function writtenClaim(object: WrittenObject): ClaimSpec {
  return readFields(claimFields, object).spec ?? {};
}

export type WorkloadKind =
  | "Pod"
  | "Deployment"
  | "ReplicaSet"
  | "StatefulSet"
  | "ReplicationController"
  | "Job"
  | "CronJob"
  | "DaemonSet";

export const WORKLOAD_RESOURCES: Readonly<Record<WorkloadKind, Resource<KubeObject>>> = {
  Pod: pods,
  Deployment: deployments,
  ReplicaSet: replicaSets,
  StatefulSet: statefulSets,
  DaemonSet: namespaced("apps", "DaemonSet"),
  ReplicationController: replicationControllers,
  Job: jobs,
  CronJob: cronJobs,
};

type ObjectKind = Pick<WrittenObject, "apiVersion" | "kind">;

export function isWorkloadKind(kind: string): kind is WorkloadKind {
  return Object.hasOwn(WORKLOAD_RESOURCES, kind);
}

/** Returns the kind of an object that makes pods, or is one; undefined for all others. */
export function workloadKind({ apiVersion, kind }: ObjectKind): WorkloadKind | undefined {
  return isWorkloadKind(kind) && apiVersionOf(WORKLOAD_RESOURCES[kind]) === apiVersion ? kind : undefined;
}

const stringMap = z.record(z.string(), z.string());
const podMetadata = z.object({ labels: stringMap.exactOptional(), annotations: stringMap.exactOptional() });
const template = z.object({ metadata: podMetadata.default({}), spec: podSpec });
const count = z.number().int().min(0);

const replicatedFields = z.looseObject({
  spec: z.looseObject({
    replicas: count.default(1),
    ordinals: z.looseObject({ start: count.default(0) }).default({ start: 0 }),
    volumeClaimTemplates: z
      .array(z.looseObject({ metadata: z.looseObject({ name: z.string() }), spec: claimSpec.default({}) }))
      .default([]),
    template,
  }),
});
const jobSpec = z.looseObject({
  parallelism: count.default(1),
  completions: count.optional(),
  suspend: z.boolean().default(false),
  completionMode: z.string().optional(),
  template,
});
const jobStatus = z.looseObject({
  active: count.default(0),
  succeeded: count.default(0),
  uncountedTerminatedPods: z.looseObject({ succeeded: z.array(z.string()).default([]) }).default({ succeeded: [] }),
  conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).default([]),
});
const jobFields = z.looseObject({ spec: jobSpec, status: jobStatus.prefault({}) });
const cronJobFields = z.looseObject({
  spec: z.looseObject({
    suspend: z.boolean().default(false),
    jobTemplate: z.looseObject({ metadata: podMetadata.default({}), spec: jobSpec }),
  }),
});

/** The pods that a workload has at one time. */
export interface WorkloadPods {
  readonly replicas: number;
  readonly metadata: Pick<ObjectMeta, "labels" | "annotations" | "finalizers">;
  readonly spec: PodSpec;
  readonly notes: readonly string[];
  /** Claim templates: each pod has a claim of its own from each. */
  readonly claims: readonly ClaimTemplate[];
  /** True if the Job has an index per pod. */
  readonly indexed: boolean;
  /** Condition by which the Job has ended. Undefined: it has not. */
  readonly ended: string | undefined;
  /** True if the Job is suspended: it has no pods yet. */
  readonly suspended: boolean;
  /** The lowest ordinal of a StatefulSet's pods. */
  readonly firstOrdinal: number;
}

const PLAIN = { notes: [], claims: [], indexed: false, ended: undefined, suspended: false, firstOrdinal: 0 };

/** Reads a workload's pods. Throws a `Failure` that names a wrong field. */
export function podsOf(object: WrittenObject, kind: WorkloadKind): WorkloadPods {
  switch (kind) {
    case "Pod":
      return { ...PLAIN, replicas: 1, ...readFields(template, object) };
    case "Job":
      return jobPods(readFields(jobFields, object));
    case "CronJob": {
      const { suspend, jobTemplate } = readFields(cronJobFields, object).spec;
      const pods = jobPods({ spec: jobTemplate.spec, status: jobStatus.parse({}) });
      const note = suspend ? "is suspended: none starts before that ends" : "for one run of it";
      return { ...pods, notes: [...pods.notes, note] };
    }
    default: {
      const { replicas, template: own, ordinals, volumeClaimTemplates } = readFields(replicatedFields, object).spec;
      const claims = volumeClaimTemplates.map(({ metadata, spec }) => ({ name: metadata.name, spec }));
      return { ...PLAIN, ...own, replicas, firstOrdinal: ordinals.start, claims };
    }
  }
}

/** Returns a workload's metadata with all annotations that admission copies into its pod template, those of a Job template included. */
export function outerMetadata(object: WrittenObject, kind: WorkloadKind): WrittenObject["metadata"] {
  if (kind !== "CronJob") return object.metadata;
  const { metadata } = readFields(cronJobFields, object).spec.jobTemplate;
  return { ...object.metadata, annotations: { ...object.metadata.annotations, ...metadata.annotations } };
}

// The Job controller makes no more pods once one of them is True (pkg/controller/job).
const ENDED: readonly string[] = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];

function jobPods({ spec, status }: Pick<z.output<typeof jobFields>, "spec" | "status">): WorkloadPods {
  const { parallelism, completions, suspend, completionMode, template: own } = spec;
  const { active, succeeded, uncountedTerminatedPods, conditions } = status;
  const pods = { ...PLAIN, ...own, indexed: completionMode === "Indexed", suspended: suspend };
  const ended = ENDED.find((end) => conditions.some(({ type, status }) => type === end && status === "True"));
  if (ended !== undefined) return { ...pods, replicas: 0, ended, notes: [`has ended (${ended}): no more pods come`] };
  const done = succeeded + uncountedTerminatedPods.succeeded.length;
  // Without a number of completions, the first success means that no work is left.
  const left = completions === undefined && done > 0 ? active : Math.max(0, (completions ?? parallelism) - done);
  const replicas = Math.min(parallelism, left);
  const notes = [
    ...(suspend ? ["is suspended: no pod starts before that ends"] : []),
    ...(left > replicas ? [`${left - replicas} more pods come as those end`] : []),
  ];
  return { ...pods, replicas, notes };
}

/** Returns the Job that would run whole in a member, as admission has marked it: the workload itself, or a run of a CronJob. */
export function wholeJobOf(
  object: WrittenObject,
  { kind, namespace, name }: { readonly kind: WorkloadKind; readonly namespace: string; readonly name: string },
): Stored<Job> | undefined {
  if (kind !== "Job" && kind !== "CronJob") return undefined;
  const { metadata, spec } =
    kind === "Job"
      ? { ...readFields(jobFields, object), metadata: object.metadata }
      : readFields(cronJobFields, object).spec.jobTemplate;
  const { labels = {}, annotations = {} } = metadata;
  if (!isMarkedWhole(labels)) return undefined;
  const { parallelism, completions, template } = spec;
  const own = { name: kind === "Job" ? name : `${name}-*`, namespace, uid: `whole/${namespace}/${name}` };
  return {
    metadata: { ...own, resourceVersion: "", labels, annotations },
    spec: { parallelism, ...defined({ completions }), template },
  };
}
