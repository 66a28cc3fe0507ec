import { createHash } from "node:crypto";
import { z } from "zod";
import type { ObjectMeta, Pod, PodSpec, Stored } from "../../api/kubernetes.ts";
import { podSpec } from "../../pods/spec-shape.ts";
import { type ClaimSpec, claimSpec } from "./claims.ts";
import { readFields, type WrittenObject } from "./documents.ts";

/** Kinds whose pods can be planned. */
export type WorkloadKind = keyof typeof API_VERSIONS;

const API_VERSIONS = {
  Pod: "v1",
  Deployment: "apps/v1",
  ReplicaSet: "apps/v1",
  StatefulSet: "apps/v1",
  ReplicationController: "v1",
  Job: "batch/v1",
  CronJob: "batch/v1",
  DaemonSet: "apps/v1",
} as const;
const KINDS: readonly WorkloadKind[] = [
  "Pod",
  "Deployment",
  "ReplicaSet",
  "StatefulSet",
  "ReplicationController",
  "Job",
  "CronJob",
  "DaemonSet",
];

/** The kind of an object that makes pods, or is one; undefined for all others. */
export function workloadKind({
  apiVersion,
  kind,
}: Pick<WrittenObject, "apiVersion" | "kind">): WorkloadKind | undefined {
  return KINDS.find((known) => known === kind && API_VERSIONS[known] === apiVersion);
}

// Groups in which Kubernetes itself has, or had, these kinds.
const OWN_GROUPS: ReadonlySet<string> = new Set(["", "apps", "batch", "extensions"]);

/** The apiVersion to write instead, for a workload of a version that no API server has any more; undefined: all is well. */
export function servedVersion({ apiVersion, kind }: Pick<WrittenObject, "apiVersion" | "kind">): string | undefined {
  const known = KINDS.find((one) => one === kind);
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  if (known === undefined || API_VERSIONS[known] === apiVersion || !OWN_GROUPS.has(group)) return undefined;
  return API_VERSIONS[known];
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
    volumeClaimTemplates: z
      .array(z.looseObject({ metadata: z.looseObject({ name: z.string() }), spec: claimSpec.optional() }))
      .nullish(),
  }),
});

/** The pods that a workload has at one time, as its controllers would make them. */
export interface WorkloadPods {
  readonly replicas: number;
  /** Labels and annotations of its pods, as written in the template. */
  readonly metadata: Pick<ObjectMeta, "labels" | "annotations" | "finalizers">;
  readonly spec: PodSpec;
  /** What is to be said beside it. */
  readonly notes: readonly string[];
  /** Its claim templates, of which each pod has its own claim. */
  readonly claims?: readonly { readonly name: string; readonly spec: ClaimSpec }[];
  readonly indexed?: boolean;
  /** A Deployment is paused: its pods are made from an earlier template, when this one is newer. */
  readonly paused?: boolean;
  /** The lowest ordinal of a StatefulSet's pods. */
  readonly firstOrdinal?: number;
}

/** Reads what a workload says of its pods; throws a `Failure` that names what is wrong. */
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
      if (kind === "Deployment") return { ...pods, paused: spec.paused === true };
      if (kind !== "StatefulSet") return pods;
      const { ordinals, volumeClaimTemplates } = readFields(statefulSetFields, object).spec;
      return {
        ...pods,
        firstOrdinal: ordinals?.start ?? 0,
        claims: (volumeClaimTemplates ?? []).map(({ metadata, spec: own = {} }) => ({
          name: metadata.name,
          spec: own,
        })),
      };
    }
  }
}

/** A workload's metadata, with all annotations that admission copies into its pod template: a CronJob's Job template may have some. */
export function outerMetadata(object: WrittenObject, kind: WorkloadKind): WrittenObject["metadata"] {
  if (kind !== "CronJob") return object.metadata;
  const { jobTemplate } = readFields(cronJobFields, object).spec;
  return { ...object.metadata, annotations: { ...object.metadata.annotations, ...jobTemplate.metadata?.annotations } };
}

// Its controller makes no more pods as soon as one of them is True (pkg/controller/job).
const ENDED: ReadonlySet<string> = new Set(["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"]);

function jobPods(
  { parallelism, completions, suspend, completionMode, template: own }: z.infer<typeof jobSpec>,
  { active, succeeded, uncountedTerminatedPods, conditions }: z.infer<typeof jobStatus> = {},
): WorkloadPods {
  const pods = { ...templateOf(own), indexed: completionMode === "Indexed" };
  const ended = conditions?.find(({ type, status }) => ENDED.has(type) && status === "True");
  if (ended !== undefined) return { ...pods, replicas: 0, notes: [`has ended (${ended.type}): no more pods come`] };
  const done = (succeeded ?? 0) + (uncountedTerminatedPods?.succeeded?.length ?? 0);
  const atOnce = parallelism ?? 1;
  // Without a number of completions, the first that succeeds says that there is no more work.
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

// In place of what a controller makes up.
const HASH = "planned";

/** Pod `index` of a workload, as its controllers would create it; `owner` is the one that makes it. */
export function podOf(
  workload: { readonly kind: WorkloadKind; readonly namespace: string; readonly name: string },
  { metadata, spec, claims = [], indexed = false }: WorkloadPods,
  index: number,
  owner: { readonly kind: string; readonly name: string; readonly uid: string } = ownerOf(workload),
): Stored<Pod> {
  const { kind, namespace } = workload;
  const name = podName(workload, owner.name, index, indexed);
  const apiVersion = KINDS.filter((known) => known === owner.kind).map((known) => API_VERSIONS[known])[0] ?? "v1";
  const controller = { apiVersion, blockOwnerDeletion: true, controller: true, ...owner };
  const own = claims.map((claim) => ({
    name: claim.name,
    persistentVolumeClaim: { claimName: `${claim.name}-${workload.name}-${index}` },
  }));
  const written = spec.volumes ?? [];
  const volumes = [...written.filter((volume) => !claims.some(({ name: claim }) => claim === volume.name)), ...own];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...controllerLabels(workload, owner, index) },
      name,
      namespace,
      uid: `planned/${kind}/${namespace}/${name}`,
      resourceVersion: "0",
      ...(kind === "Pod" ? {} : { ownerReferences: [controller] }),
    },
    spec: { ...spec, ...(volumes.length === 0 ? {} : { volumes }) },
  };
}

function ownerOf({ kind, namespace, name }: { kind: WorkloadKind; namespace: string; name: string }): {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
} {
  // A Job's controller writes its uid into a label of pods, where no slash may stand.
  const uid = createHash("sha256").update(`${kind}/${namespace}/${name}`).digest("hex").slice(0, 36);
  if (kind === "Deployment") return { kind: "ReplicaSet", name: `${name}-${HASH}`, uid };
  return kind === "CronJob" ? { kind: "Job", name: `${name}-${HASH}`, uid } : { kind, name, uid };
}

function podName(
  { kind, name }: { readonly kind: WorkloadKind; readonly name: string },
  owner: string,
  index: number,
  indexed: boolean,
): string {
  if (kind === "Pod") return name;
  if (kind === "StatefulSet") return `${name}-${index}`;
  return indexed ? `${owner}-${index}-*` : `${owner}-*${index}`;
}

/** What a controller adds to the labels of its pods, as far as placement may depend on it. */
function controllerLabels(
  { kind, name }: { readonly kind: WorkloadKind; readonly name: string },
  owner: { readonly name: string; readonly uid: string },
  index: number,
): Record<string, string> {
  switch (kind) {
    case "Deployment":
      return { "pod-template-hash": owner.name.slice(name.length + 1) };
    case "StatefulSet":
      return {
        "statefulset.kubernetes.io/pod-name": `${name}-${index}`,
        "apps.kubernetes.io/pod-index": String(index),
      };
    case "Job":
    case "CronJob":
      return {
        "job-name": owner.name,
        "batch.kubernetes.io/job-name": owner.name,
        "controller-uid": owner.uid,
        "batch.kubernetes.io/controller-uid": owner.uid,
      };
    default:
      return {};
  }
}
