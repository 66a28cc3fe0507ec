import { MIRROR_ANNOTATION } from "../../../webhook/mutate-pod.ts";
import { type Annotations, asksForDelegation, isAuthorKey, parsePlacement } from "../../api/annotations.ts";
import { delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATE_ANNOTATION, DELEGATION_LABEL, HOST_LABEL } from "../../api/keys.ts";
import type { Namespace, ObjectMeta, Stored } from "../../api/kubernetes.ts";
import { controllerOf } from "../../pods/pod-state.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { isWorkloadKind, outerMetadata, podsOf, type WorkloadKind } from "../simulation/workloads.ts";

// Namespaces that serve the cluster itself (manifests/policies.yaml, legation-namespaces).
const RESERVED_NAMESPACES: ReadonlySet<string> = new Set([
  "kube-system",
  "kube-public",
  "kube-node-lease",
  "legation-system",
]);

type PodMetadata = Pick<ObjectMeta, "labels" | "annotations" | "ownerReferences">;

export interface OwnWorkload {
  readonly kind: string;
  readonly name: string;
  /** Metadata of the workload itself, which does not apply to its pods. */
  readonly metadata?: Pick<WrittenObject["metadata"], "labels" | "annotations" | "ownerReferences"> | undefined;
  readonly template?: Pick<ObjectMeta, "annotations"> | undefined;
}

/** Returns the parts of a workload that decide whether its pods are delegated. */
export function ownWorkloadOf(object: WrittenObject, kind: WorkloadKind): OwnWorkload {
  const { name = "" } = object.metadata;
  return { kind, name, metadata: outerMetadata(object, kind), template: podsOf(object, kind).metadata };
}

const WRITE_ANNOTATION = `write the annotation ${DELEGATE_ANNOTATION}: "true" on the workload; create a bare pod or a Job anew with it`;
const MADE_BEFORE =
  "created before delegation was asked for: delete them, and their workload creates them anew (create a bare pod or a Job " +
  "anew yourself; a CronJob's next run is delegated; in overflow mode a pod whose author wrote spec.nodeName never is)";

/**
 * Returns why a pod is not delegated, and what to write. The text fits one pod and many. `namespace` is undefined if the account may
 * not read it, `workload` if it is unknown.
 */
export function whyNotDelegated(
  metadata: PodMetadata,
  namespace: Stored<Namespace> | undefined,
  workload?: OwnWorkload,
): string {
  const { labels = {}, annotations = {} } = metadata;
  if (labels[HOST_LABEL] !== undefined) {
    return `the label ${HOST_LABEL} is there, so another host delegates to this cluster: its delegates are never delegated`;
  }
  if (annotations[MIRROR_ANNOTATION] !== undefined) {
    return "static pods, which a kubelet of this cluster runs by itself, are never delegated";
  }
  if (controllerOf({ metadata })?.kind === "DaemonSet") return "pods of DaemonSets belong to nodes of this cluster";
  if (namespace === undefined) return "neither the pod nor its workload or namespace asked for delegation";
  const { name } = namespace.metadata;
  if (RESERVED_NAMESPACES.has(name)) {
    return `namespace ${name} serves this cluster itself, and what runs there is never delegated`;
  }
  const mode = delegationModeOf(namespace.metadata.labels);
  // A namespace that delegates all pods needs no annotation.
  const isOptional = mode !== undefined && mode !== "annotated";
  const problem = declined(metadata, workload) ?? (isOptional ? undefined : notAsked(metadata, name, workload));
  return mode === undefined ? `${noMode(namespace)}; ${problem ?? "create its pods anew"}` : (problem ?? MADE_BEFORE);
}

/** Describes the problem of the namespace's label, and the command that fixes it. */
function noMode({ metadata: { name, labels = {} } }: Stored<Namespace>): string {
  const value = labels[DELEGATION_LABEL];
  const command = `kubectl label namespace ${name} ${DELEGATION_LABEL}=annotated`;
  if (value === undefined) return `namespace ${name} has no label ${DELEGATION_LABEL}: write \`${command}\``;
  return `namespace ${name} has the label ${DELEGATION_LABEL}: "${value}", which is no mode: write \`${command} --overwrite\``;
}

/** Returns the annotations that the workload's next pods have: the template's if it is known, else the pod's. */
function annotationsOf({ annotations }: PodMetadata, workload: OwnWorkload | undefined): Annotations {
  return (workload?.template === undefined ? annotations : workload.template.annotations) ?? {};
}

/** Returns the annotation by which the author declines, or which cannot be read. */
function declined(metadata: PodMetadata, workload: OwnWorkload | undefined): string | undefined {
  const next = annotationsOf(metadata, workload);
  if ([next, metadata.annotations].some((each) => each?.[DELEGATE_ANNOTATION] === "false")) {
    return `the annotation ${DELEGATE_ANNOTATION} there is "false"`;
  }
  const parsed = [next, workload?.metadata?.annotations ?? {}].map((each) => parsePlacement(each));
  return parsed.flatMap((read) => (read.ok ? [] : read.problems))[0]?.message;
}

/** Returns what to write so that the workload's next pods ask for delegation. Undefined if they do. */
function notAsked(metadata: PodMetadata, namespace: string, workload: OwnWorkload | undefined): string | undefined {
  if (asks(annotationsOf(metadata, workload))) return undefined;
  if (workload !== undefined && asks(workload.metadata?.annotations)) return notInTemplate(namespace, workload);
  const misplaced = Object.keys({ ...workload?.metadata?.labels, ...metadata.labels }).find(isAuthorKey);
  if (misplaced !== undefined) {
    return `${misplaced} is a label there, and says something only as an annotation: write it under metadata.annotations`;
  }
  const isUnknown = workload === undefined && controllerOf({ metadata }) !== undefined;
  const where = "; when the workload has it already, `legation status KIND NAME` says what carries it over";
  return `nothing asks for it: ${WRITE_ANNOTATION}${isUnknown ? where : ""}`;
}

/** Returns how the workload's annotations get into its pod template: admission copies them at an update. */
function notInTemplate(namespace: string, { kind, name, metadata }: OwnWorkload): string {
  const outer = metadata?.ownerReferences?.find(({ controller }) => controller === true) ?? { kind, name };
  const touch = `kubectl annotate ${outer.kind.toLowerCase()} ${outer.name} -n ${namespace} touched="$(date)" --overwrite`;
  const remedy =
    outer.kind === "Job"
      ? "a Job's template cannot change, so delete the Job and create it anew"
      : isWorkloadKind(outer.kind)
        ? `write \`${touch}\`, then delete pods that stay; a CronJob's next run has them`
        : `${outer.kind} ${outer.name} makes that template: write them into its own pod template`;
  return `the annotations of ${kind} ${name} are not in its pod template: ${remedy}`;
}

function asks(annotations: Annotations = {}): boolean {
  const read = parsePlacement(annotations);
  return read.ok && asksForDelegation(read.placement);
}
