import { z } from "zod";
import type { KubeObject, ObjectMeta, PodSpec } from "../../api/kubernetes.ts";
import { apiVersionOf, deployments, pods, type Resource } from "../../kube/resources.ts";
import { podSpec } from "../../pods/spec-shape.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";
import { type ClaimSpec, claimSpec } from "./claims.ts";

/** A kind whose pods can be planned. */
export type WorkloadKind =
  | "Pod"
  | "Deployment"
  | "ReplicaSet"
  | "StatefulSet"
  | "ReplicationController"
  | "Job"
  | "CronJob"
  | "DaemonSet";

const core = { group: "", version: "v1", namespaced: true } as const;
const apps = { group: "apps", version: "v1", namespaced: true } as const;
const batch = { group: "batch", version: "v1", namespaced: true } as const;

/** The API resource of each kind of workload. */
export const WORKLOAD_RESOURCES: Readonly<Record<WorkloadKind, Resource<KubeObject>>> = {
  Pod: pods,
  Deployment: deployments,
  ReplicaSet: { ...apps, plural: "replicasets", kind: "ReplicaSet" },
  StatefulSet: { ...apps, plural: "statefulsets", kind: "StatefulSet" },
  DaemonSet: { ...apps, plural: "daemonsets", kind: "DaemonSet" },
  ReplicationController: { ...core, plural: "replicationcontrollers", kind: "ReplicationController" },
  Job: { ...batch, plural: "jobs", kind: "Job" },
  CronJob: { ...batch, plural: "cronjobs", kind: "CronJob" },
};

/** Reports whether a kind is one of Kubernetes' own workloads. */
export function isWorkloadKind(kind: string): kind is WorkloadKind {
  return Object.hasOwn(WORKLOAD_RESOURCES, kind);
}

/** Returns the kind of an object that makes pods, or is one; undefined for all others. */
export function workloadKind({
  apiVersion,
  kind,
}: Pick<WrittenObject, "apiVersion" | "kind">): WorkloadKind | undefined {
  return isWorkloadKind(kind) && apiVersionOf(WORKLOAD_RESOURCES[kind]) === apiVersion ? kind : undefined;
}

/** Returns the apiVersion to write in place of one that no API server serves any more; undefined if it is served. */
export function servedVersion({ apiVersion, kind }: Pick<WrittenObject, "apiVersion" | "kind">): string | undefined {
  // A group with a dot is of a custom resource.
  if (!isWorkloadKind(kind) || /^[^/]*\./.test(apiVersion)) return undefined;
  const served = apiVersionOf(WORKLOAD_RESOURCES[kind]);
  return served === apiVersion ? undefined : served;
}

const stringMap = z.record(z.string(), z.string());
const templateMetadata = z.looseObject({ labels: stringMap.nullish(), annotations: stringMap.nullish() });
const template = z.looseObject({ metadata: templateMetadata.nullish(), spec: podSpec });
const count = z.number().int().min(0);

const podFields = z.looseObject({ spec: podSpec });
const replicatedFields = z.looseObject({
  spec: z.looseObject({ replicas: count.nullish(), paused: z.boolean().nullish(), template }),
});
const jobSpec = z.looseObject({
  parallelism: count.nullish(),
  completions: count.nullish(),
  suspend: z.boolean().nullish(),
  completionMode: z.string().nullish(),
  template,
});
const jobStatus = z.looseObject({
  active: count.nullish(),
  succeeded: count.nullish(),
  uncountedTerminatedPods: z.looseObject({ succeeded: z.array(z.string()).nullish() }).nullish(),
  conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).nullish(),
});
const jobFields = z.looseObject({ spec: jobSpec, status: jobStatus.nullish() });
const cronJobFields = z.looseObject({
  spec: z.looseObject({
    suspend: z.boolean().nullish(),
    jobTemplate: z.looseObject({ metadata: templateMetadata.nullish(), spec: jobSpec }),
  }),
});
const statefulSetFields = z.looseObject({
  spec: z.looseObject({
    ordinals: z.looseObject({ start: count.nullish() }).nullish(),
    updateStrategy: z
      .looseObject({
        type: z.string().nullish(),
        rollingUpdate: z.looseObject({ partition: z.number().nullish() }).nullish(),
      })
      .nullish(),
    volumeClaimTemplates: z
      .array(z.looseObject({ metadata: z.looseObject({ name: z.string() }), spec: claimSpec.optional() }))
      .nullish(),
  }),
});

/** The pods that a workload has at one time. */
export interface WorkloadPods {
  readonly replicas: number;
  /** Labels and annotations of its pods, as written in the template. */
  readonly metadata: Pick<ObjectMeta, "labels" | "annotations" | "finalizers">;
  readonly spec: PodSpec;
  /** Remarks for the plan. */
  readonly notes: readonly string[];
  /** Claim templates: each pod has a claim of its own from each. */
  readonly claims?: readonly { readonly name: string; readonly spec: ClaimSpec }[];
  readonly indexed?: boolean;
  /** The Job is suspended: none of the pods is there yet. */
  readonly suspended?: boolean;
  /** The lowest ordinal of a StatefulSet's pods. */
  readonly firstOrdinal?: number;
  /** A changed template replaces the pods from this ordinal on. Absent: it is for new pods alone. */
  readonly replacedFrom?: number;
}

/** Reads a workload's pods. Throws a `Failure` that names a wrong field. */
export function podsOf(object: WrittenObject, kind: WorkloadKind): WorkloadPods {
  switch (kind) {
    case "Pod": {
      const { spec } = readFields(podFields, object);
      const { labels, annotations } = object.metadata;
      return { replicas: 1, metadata: present(labels, annotations), spec, notes: [] };
    }
    case "Job": {
      const { spec, status } = readFields(jobFields, object);
      return jobPods(spec, status ?? {});
    }
    case "CronJob": {
      const { suspend, jobTemplate } = readFields(cronJobFields, object).spec;
      const pods = jobPods(jobTemplate.spec);
      const notes = [
        ...pods.notes,
        suspend === true ? "is suspended: none starts before that ends" : "for one run of it",
      ];
      return { ...pods, notes };
    }
    default: {
      const { spec } = readFields(replicatedFields, object);
      const pods = { replicas: spec.replicas ?? 1, ...templateOf(spec.template), notes: [] };
      if (kind === "Deployment" && spec.paused !== true) return { ...pods, replacedFrom: 0 };
      if (kind !== "StatefulSet") return pods;
      const { ordinals, updateStrategy, volumeClaimTemplates } = readFields(statefulSetFields, object).spec;
      const firstOrdinal = ordinals?.start ?? 0;
      const replacedFrom = firstOrdinal + (updateStrategy?.rollingUpdate?.partition ?? 0);
      return {
        ...pods,
        firstOrdinal,
        ...(updateStrategy?.type === "OnDelete" ? {} : { replacedFrom }),
        claims: (volumeClaimTemplates ?? []).map(({ metadata, spec: own = {} }) => ({
          name: metadata.name,
          spec: own,
        })),
      };
    }
  }
}

/** Returns a workload's metadata with all annotations that admission copies into its pod template, those of a Job template included. */
export function outerMetadata(object: WrittenObject, kind: WorkloadKind): WrittenObject["metadata"] {
  if (kind !== "CronJob") return object.metadata;
  const { jobTemplate } = readFields(cronJobFields, object).spec;
  return { ...object.metadata, annotations: { ...object.metadata.annotations, ...jobTemplate.metadata?.annotations } };
}

// The Job controller makes no more pods once one of them is True (pkg/controller/job).
const ENDED: ReadonlySet<string> = new Set(["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"]);

function jobPods(
  { parallelism, completions, suspend, completionMode, template: own }: z.infer<typeof jobSpec>,
  { active, succeeded, uncountedTerminatedPods, conditions }: z.infer<typeof jobStatus> = {},
): WorkloadPods {
  const pods = { ...templateOf(own), indexed: completionMode === "Indexed", suspended: suspend === true };
  const ended = conditions?.find(({ type, status }) => ENDED.has(type) && status === "True");
  if (ended !== undefined) return { ...pods, replicas: 0, notes: [`has ended (${ended.type}): no more pods come`] };
  const done = (succeeded ?? 0) + (uncountedTerminatedPods?.succeeded?.length ?? 0);
  const atOnce = parallelism ?? 1;
  // Without a number of completions, the first success means that no work is left.
  const left = completions == null && done > 0 ? (active ?? 0) : Math.max(0, (completions ?? atOnce) - done);
  const replicas = Math.min(atOnce, left);
  const rest = left - replicas;
  return {
    ...pods,
    replicas,
    notes: [
      ...(suspend === true ? ["is suspended: no pod starts before that ends"] : []),
      ...(rest > 0 ? [`${rest} more pods come as those end`] : []),
    ],
  };
}

function templateOf({ metadata, spec }: z.infer<typeof template>): Pick<WorkloadPods, "metadata" | "spec"> {
  return { metadata: present(metadata?.labels, metadata?.annotations), spec };
}

function present(
  labels: Record<string, string> | null | undefined,
  annotations: Record<string, string> | null | undefined,
): WorkloadPods["metadata"] {
  return { ...(labels == null ? {} : { labels }), ...(annotations == null ? {} : { annotations }) };
}
