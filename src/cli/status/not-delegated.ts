import { z } from "zod";
import { MIRROR_ANNOTATION } from "../../../webhook/mutate-pod.ts";
import { type Annotations, asksForDelegation, isAuthorKey, parsePlacement } from "../../api/annotations.ts";
import { type DelegationMode, delegationModeOf, overflowModeOf } from "../../api/delegation-mode.ts";
import { DELEGATE_ANNOTATION, DELEGATION_LABEL, HOST_LABEL } from "../../api/keys.ts";
import type { Namespace, ObjectMeta, Stored } from "../../api/kubernetes.ts";
import { controllerOf } from "../../pods/phase.ts";
import type { WrittenObject } from "../plan/documents.ts";

// Namespaces that serve the cluster itself (manifests/policies.yaml, legation-namespaces).
const RESERVED_NAMESPACES: ReadonlySet<string> = new Set([
  "kube-system",
  "kube-public",
  "kube-node-lease",
  "legation-system",
]);

type PodMetadata = Pick<ObjectMeta, "labels" | "annotations" | "ownerReferences" | "managedFields">;

/** The workload that a pod is of. */
export interface OwnWorkload {
  readonly kind: string;
  readonly name: string;
  /** Metadata of the workload itself, which does not apply to its pods. */
  readonly metadata?: Pick<WrittenObject["metadata"], "labels" | "annotations" | "ownerReferences"> | undefined;
  /** The current pod template. */
  readonly template?: Pick<ObjectMeta, "annotations"> | undefined;
  /** A Deployment is paused: until it is resumed, pods get what an earlier template has. */
  readonly paused?: boolean | undefined;
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
  const said = whatIsSaid(metadata, workload);
  const mode = delegationModeOf(labels);
  if (mode === undefined) return `${noMode(namespace)}, then ${nextStep(said, metadata, name, workload)}`;
  // Annotations matter only where pods have to ask.
  const counts = mode === "annotated" || said.is === "declined" || said.is === "unread" ? said : ASKED;
  switch (counts.is) {
    case "declined":
      return `the annotation ${DELEGATE_ANNOTATION} there is "false"`;
    case "unread":
      return counts.problem;
    case "asked":
      return whyNotThoughAsked(metadata, mode, name, workload);
    case "not carried over":
      return `the annotations of ${workload?.kind} ${workload?.name} are not in its pod template: ${carryOver(name, workload)}`;
    case "label":
      return `${counts.key} is a label there, and says something only as an annotation: write it under metadata.annotations`;
    case "nothing":
      return `nothing asks for it: ${writeAnnotation(metadata, workload)}`;
  }
}

/** Why a pod is not delegated although its next ones are, as far as the template, the namespace or the pod itself says. */
function whyNotThoughAsked(
  metadata: PodMetadata,
  mode: DelegationMode,
  namespace: string,
  workload: OwnWorkload | undefined,
): string {
  if (metadata.annotations?.[DELEGATE_ANNOTATION] === "false" && workload !== undefined) {
    const next = nextPods(workload, namespace);
    return (
      `the annotation ${DELEGATE_ANNOTATION} is "false" there, and not in the pod template of ${workload.kind} ${workload.name}: ` +
      `${next}, unless something writes it on pods (a policy, an admission webhook), which is to leave these out`
    );
  }
  const read = parsePlacement(annotationsOf(metadata, workload));
  if (read.ok && overflowModeOf(read.placement, mode) === "overflow" && namesNode(metadata)) return NODE_WRITTEN;
  if (mode !== "annotated") return MADE_BEFORE;
  if (isOfEarlierTemplate(metadata, workload)) {
    return `made before delegation was asked for, and Deployment ${workload?.name} is paused: ${resume(workload?.name, namespace)}`;
  }
  if (!isOfEarlierRun(metadata, workload)) return MADE_BEFORE;
  return (
    "this run's Job was made before delegation was asked for, and makes its pods anew as they are: " +
    `the next run of CronJob ${workload?.name} is delegated`
  );
}

/** Describes how the workload's pods get its current template. */
function nextPods({ kind, name, paused }: OwnWorkload, namespace: string): string {
  if (kind === "CronJob") return "its next run is delegated";
  return paused === true ? `it is paused, so ${resume(name, namespace)}` : "delete them to have them made anew";
}

/** Reports whether a paused Deployment asked for delegation after it created the pod's ReplicaSet. */
function isOfEarlierTemplate({ annotations }: PodMetadata, workload: OwnWorkload | undefined): boolean {
  return workload?.paused === true && !asks(annotations);
}

/** Reports whether a CronJob created the pod's Job before it asked. A Job's template does not change. */
function isOfEarlierRun({ annotations }: PodMetadata, workload: OwnWorkload | undefined): boolean {
  return workload?.kind === "CronJob" && !asks(annotations);
}

/** The first matching statement of the annotations about delegation. */
type Said =
  | { readonly is: "declined" }
  | { readonly is: "unread"; readonly problem: string }
  | { readonly is: "asked" }
  /** The workload asks, and its pod template does not. */
  | { readonly is: "not carried over" }
  /** A label carries a key that only works as an annotation. */
  | { readonly is: "label"; readonly key: string }
  | { readonly is: "nothing" };

const ASKED: Said = { is: "asked" };

function whatIsSaid(metadata: PodMetadata, workload: OwnWorkload | undefined): Said {
  const annotations = annotationsOf(metadata, workload);
  if (annotations[DELEGATE_ANNOTATION] === "false") return { is: "declined" };
  for (const each of [annotations, workload?.metadata?.annotations]) {
    const read = parsePlacement(each ?? {});
    if (!read.ok) return { is: "unread", problem: read.problems[0]?.message ?? "" };
  }
  if (asks(annotations)) return ASKED;
  if (asks(workload?.metadata?.annotations)) return { is: "not carried over" };
  const misplaced = Object.keys({ ...workload?.metadata?.labels, ...metadata.labels }).find(isAuthorKey);
  return misplaced === undefined ? { is: "nothing" } : { is: "label", key: misplaced };
}

/** Returns the annotations of the template if it is known, else of the pod. */
function annotationsOf({ annotations = {} }: PodMetadata, workload: OwnWorkload | undefined): Annotations {
  return workload?.template === undefined ? annotations : (workload.template.annotations ?? {});
}

const NODE_WRITTEN = "spec.nodeName was written by the author: in overflow mode such pods are never delegated";
const MADE_BEFORE =
  "made before delegation was asked for: delete them to have them made anew (a pod without a controller, create it again)";

const WRITE_ANNOTATION = `write the annotation ${DELEGATE_ANNOTATION}: "true" on the workload; a bare pod or a Job has to be made anew with it`;

/** Returns the annotation to write. An unknown workload may have it already. */
function writeAnnotation(metadata: PodMetadata, workload: OwnWorkload | undefined): string {
  const outer = workload?.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (outer !== undefined && OUTER_KINDS.has(outer.kind)) {
    const command = `legation status ${outer.kind.toLowerCase()} ${outer.name}`;
    return `${WRITE_ANNOTATION}; when ${outer.kind} ${outer.name} has it already, \`${command}\` says what carries it over`;
  }
  if (workload !== undefined || controllerOf({ metadata }) === undefined) return WRITE_ANNOTATION;
  return `${WRITE_ANNOTATION}; when the workload has it already, \`legation status KIND NAME\` says what carries it over`;
}

// Kubernetes' own workloads that make workloads.
const OUTER_KINDS: ReadonlySet<string> = new Set(["Deployment", "CronJob"]);

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

/** Describes the problem of the namespace's label, and the command that fixes it. */
function noMode({ metadata: { name, labels = {} } }: Stored<Namespace>): string {
  const value = labels[DELEGATION_LABEL];
  const command = `kubectl label namespace ${name} ${DELEGATION_LABEL}=annotated`;
  if (value === undefined) return `namespace ${name} has no label ${DELEGATION_LABEL}: write \`${command}\``;
  return `namespace ${name} has the label ${DELEGATION_LABEL}: "${value}", which is no mode: write \`${command} --overwrite\``;
}

/** Returns the remaining step once the namespace is in mode `annotated`. */
function nextStep(said: Said, metadata: PodMetadata, namespace: string, workload: OwnWorkload | undefined): string {
  switch (said.is) {
    case "declined":
      return `write the annotation ${DELEGATE_ANNOTATION}: "true" in place of "false"`;
    case "unread":
      return `put right what cannot be read: ${said.problem}`;
    case "asked":
      if (isOfEarlierTemplate(metadata, workload)) return resume(workload?.name, namespace);
      return isOfEarlierRun(metadata, workload) ? "wait for its next run" : "make its pods anew";
    case "not carried over":
      return carryOver(namespace, workload);
    case "label":
      return `write ${said.key} under metadata.annotations: it is a label there`;
    case "nothing":
      return writeAnnotation(metadata, workload);
  }
}

/** How annotations of a workload come into its template: admission copies them at its next update. */
function carryOver(namespace: string, { kind = "", name = "", metadata, paused }: Partial<OwnWorkload> = {}): string {
  // A paused Deployment cannot be restarted, and resuming is an update, too.
  if (paused === true) return resume(name, namespace);
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

function resume(name: string | undefined, namespace: string): string {
  return `write \`kubectl rollout resume deployment ${name} -n ${namespace}\``;
}

function templateOf({ kind, name = "" }: { readonly kind: string; readonly name?: string }): string {
  return `${kind} ${name} makes that template: write them into its own pod template`;
}

function asks(annotations: WrittenObject["metadata"]["annotations"] = {}): boolean {
  const read = parsePlacement(annotations);
  return read.ok && asksForDelegation(read.placement);
}

const writesNode = z.object({ "f:spec": z.object({ "f:nodeName": z.unknown() }) });

/** Reports whether the pod's creator set its node. A Binding leaves no managed fields. */
function namesNode({ managedFields = [] }: PodMetadata): boolean {
  return managedFields.some(({ fieldsV1 }) => {
    const { data } = writesNode.safeParse(fieldsV1);
    return data !== undefined && "f:nodeName" in data["f:spec"];
  });
}
