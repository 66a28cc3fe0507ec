import { z } from "zod";
import { MIRROR_ANNOTATION } from "../../../webhook/mutate-pod.ts";
import { type Annotations, asksForDelegation, isAuthorKey, parsePlacement } from "../../api/annotations.ts";
import { delegationModeOf, isWanted, overflowModeOf } from "../../api/delegation-mode.ts";
import { DELEGATE_ANNOTATION, DELEGATION_LABEL, HOST_LABEL } from "../../api/keys.ts";
import type { Namespace, ObjectMeta, Stored } from "../../api/kubernetes.ts";
import { controllerOf } from "../../pods/phase.ts";
import { RESERVED_NAMESPACES } from "../plan/admission.ts";
import type { WrittenObject } from "../plan/documents.ts";

type PodMetadata = Pick<ObjectMeta, "labels" | "annotations" | "ownerReferences" | "managedFields">;

/** The workload that a pod is of. */
export interface OwnWorkload {
  readonly kind: string;
  readonly name: string;
  /** Its own, which says nothing to its pods. */
  readonly metadata?: Pick<WrittenObject["metadata"], "labels" | "annotations" | "ownerReferences"> | undefined;
  /** What its next pods get. */
  readonly template?: Pick<ObjectMeta, "annotations"> | undefined;
}

/**
 * Why a pod with this metadata is the host's own, and what to write. It is said of one pod or of many. `namespace`: the pod's, as
 * it is now; undefined when it may not be read. `workload`: absent when it is not known.
 */
export function whyNotDelegated(
  metadata: PodMetadata,
  namespace: Stored<Namespace> | undefined,
  workload?: OwnWorkload,
): string {
  const never = whyNever(metadata);
  if (never !== undefined) return never;
  if (namespace === undefined) return "its namespace, workload or itself did not ask for delegation";
  const { name, labels = {} } = namespace.metadata;
  if (RESERVED_NAMESPACES.has(name)) {
    return `namespace ${name} serves this cluster itself, and what runs there is never delegated`;
  }
  const { annotations = {} } = metadata;
  const mode = delegationModeOf(labels);
  if (mode === undefined) return `${noMode(namespace)}, then ${nextStep(metadata, name, workload)}`;
  if (annotations[DELEGATE_ANNOTATION] === "false") return `the annotation ${DELEGATE_ANNOTATION} there is "false"`;
  const unread = unreadIn(annotations, workload);
  if (unread !== undefined) return unread;
  const read = parsePlacement(annotations);
  if (read.ok && isWanted(read.placement, mode)) {
    const hasNode = overflowModeOf(read.placement, mode) === "overflow" && namesNode(metadata);
    if (hasNode) return "spec.nodeName was written by the author: in overflow mode such pods are never delegated";
  }
  if (mode !== "annotated" || asks(annotations) || asks(workload?.template?.annotations)) return MADE_BEFORE;
  if (asks(workload?.metadata?.annotations)) {
    return `the annotations of ${workload?.kind} ${workload?.name} are not in its pod template: ${carryOver(name, workload)}`;
  }
  const misplaced = Object.keys({ ...workload?.metadata?.labels, ...metadata.labels }).find(isAuthorKey);
  if (misplaced !== undefined) {
    return `${misplaced} is a label there, and says something only as an annotation: write it under metadata.annotations`;
  }
  return `nothing asks for it: ${writeAnnotation(metadata, workload)}`;
}

const MADE_BEFORE =
  "made before delegation was asked for: delete them to have them made anew (a pod without a controller, create it again)";

const WRITE_ANNOTATION = `write the annotation ${DELEGATE_ANNOTATION}: "true" on the workload; a bare pod or a Job has to be made anew with it`;

/** What to write; where the workload itself is not known, it may have the annotation already. */
function writeAnnotation(metadata: PodMetadata, workload: OwnWorkload | undefined): string {
  if (workload !== undefined || controllerOf({ metadata }) === undefined) return WRITE_ANNOTATION;
  return `${WRITE_ANNOTATION}; when the workload has it already, \`legation status KIND NAME\` says what carries it over`;
}

/** What is wrong with the first annotation that cannot be read, and what to write. The template of today counts more than its pod. */
function unreadIn(annotations: Annotations, workload: OwnWorkload | undefined): string | undefined {
  for (const each of [workload?.template?.annotations ?? annotations, workload?.metadata?.annotations]) {
    const read = parsePlacement(each ?? {});
    if (!read.ok) return read.problems[0]?.message;
  }
  return undefined;
}

/** As admission passes a pod over. */
function whyNever(metadata: PodMetadata): string | undefined {
  const { labels = {}, annotations = {} } = metadata;
  if (labels[HOST_LABEL] !== undefined) {
    return `the label ${HOST_LABEL} is there, so another host delegates to this cluster: its delegates are never delegated`;
  }
  if (annotations[MIRROR_ANNOTATION] !== undefined) {
    return "static pods, which a kubelet of this cluster runs by itself, are never delegated";
  }
  if (controllerOf({ metadata })?.kind === "DaemonSet") {
    return "pods of DaemonSets belong to nodes of this cluster";
  }
  return undefined;
}

/** What is wrong with the namespace's label, and the command that puts it right. */
function noMode({ metadata: { name, labels = {} } }: Stored<Namespace>): string {
  const value = labels[DELEGATION_LABEL];
  const command = `kubectl label namespace ${name} ${DELEGATION_LABEL}=annotated`;
  if (value === undefined) return `namespace ${name} has no label ${DELEGATION_LABEL}: write \`${command}\``;
  return `namespace ${name} has the label ${DELEGATION_LABEL}: "${value}", which is no mode: write \`${command} --overwrite\``;
}

/** What is left to do once the namespace is in mode `annotated`. */
function nextStep(metadata: PodMetadata, namespace: string, workload: OwnWorkload | undefined): string {
  const { annotations = {} } = metadata;
  const unread = unreadIn(annotations, workload);
  if (unread !== undefined) return `put right what cannot be read: ${unread}`;
  if (asks(annotations) || asks(workload?.template?.annotations)) return "make its pods anew";
  if (asks(workload?.metadata?.annotations)) return carryOver(namespace, workload);
  return writeAnnotation(metadata, workload);
}

/** How annotations of a workload come into its template: admission copies them at its next update. */
function carryOver(namespace: string, { kind = "", name = "", metadata }: Partial<OwnWorkload> = {}): string {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (owner !== undefined) {
    return owner.kind === "Deployment" ? restart("deployment", owner.name ?? "", namespace) : templateOf(owner);
  }
  const resource = kind.toLowerCase();
  switch (kind) {
    case "Deployment":
    case "StatefulSet":
      return restart(resource, name, namespace);
    case "Job":
      return "a Job's template cannot change, so delete it and make it again";
    case "CronJob":
      return `write \`kubectl annotate ${resource} ${name} -n ${namespace} touched="$(date)" --overwrite\`; its next run has them`;
    default:
      return `write \`kubectl annotate ${resource} ${name} -n ${namespace} touched="$(date)" --overwrite\`, then delete its pods`;
  }
}

function restart(resource: string, name: string, namespace: string): string {
  return `write \`kubectl rollout restart ${resource} ${name} -n ${namespace}\``;
}

function templateOf({ kind, name = "" }: { readonly kind: string; readonly name?: string }): string {
  return `${kind} ${name} makes that template: write them into its own pod template`;
}

function asks(annotations: WrittenObject["metadata"]["annotations"] = {}): boolean {
  const read = parsePlacement(annotations);
  return read.ok && asksForDelegation(read.placement);
}

const writesNode = z.object({ "f:spec": z.object({ "f:nodeName": z.unknown() }) });

/** Whether whoever made the pod gave it its node: a Binding leaves no trace in the managed fields. */
function namesNode({ managedFields = [] }: PodMetadata): boolean {
  return managedFields.some(({ fieldsV1 }) => {
    const { data } = writesNode.safeParse(fieldsV1);
    return data !== undefined && "f:nodeName" in data["f:spec"];
  });
}
