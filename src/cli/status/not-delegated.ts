import { z } from "zod";
import { MIRROR_ANNOTATION } from "../../../webhook/mutate-pod.ts";
import { type Annotations, asksForDelegation, isAuthorKey, parsePlacement } from "../../api/annotations.ts";
import { type DelegationMode, delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATE_ANNOTATION, DELEGATION_LABEL, HOST_LABEL } from "../../api/keys.ts";
import type { Namespace, ObjectMeta, Stored } from "../../api/kubernetes.ts";
import { isOverflowMode } from "../../api/overflow.ts";
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
}

/**
 * Returns why a pod is not delegated, and what to write. The text fits one pod and many. `namespace` is undefined if the account may
 * not read it, `workload` if it is unknown.
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
  const mode = delegationModeOf(labels);
  const { why, remedy } = adviceOf(metadata, name, mode, workload);
  return mode === undefined ? `${noMode(namespace)}, then ${remedy}` : why;
}

/** Two answers by the annotations. */
interface Advice {
  /** Why the pod is not delegated, in a namespace that has a mode. */
  readonly why: string;
  /** The remaining step, once the namespace is in mode `annotated`. */
  readonly remedy: string;
}

function adviceOf(
  metadata: PodMetadata,
  namespace: string,
  mode: DelegationMode | undefined,
  workload: OwnWorkload | undefined,
): Advice {
  const annotations = annotationsOf(metadata, workload);
  if (annotations[DELEGATE_ANNOTATION] === "false") {
    return {
      why: `the annotation ${DELEGATE_ANNOTATION} there is "false"`,
      remedy: `write the annotation ${DELEGATE_ANNOTATION}: "true" in place of "false"`,
    };
  }
  for (const each of [annotations, workload?.metadata?.annotations]) {
    const read = parsePlacement(each ?? {});
    const problem = read.ok ? undefined : (read.problems[0]?.message ?? "");
    if (problem !== undefined) return { why: problem, remedy: `put right what cannot be read: ${problem}` };
  }
  const isOfEarlierRun = workload?.kind === "CronJob" && !asks(metadata.annotations);
  // Annotations matter only in mode `annotated`.
  if ((mode !== undefined && mode !== "annotated") || asks(annotations)) {
    return {
      why: whyNotThoughAsked(metadata, mode, isOfEarlierRun, workload),
      remedy: isOfEarlierRun ? "wait for its next run" : "make its pods anew",
    };
  }
  if (asks(workload?.metadata?.annotations)) {
    const remedy = carryOver(namespace, workload);
    return {
      why: `the annotations of ${workload?.kind} ${workload?.name} are not in its pod template: ${remedy}`,
      remedy,
    };
  }
  const misplaced = Object.keys({ ...workload?.metadata?.labels, ...metadata.labels }).find(isAuthorKey);
  if (misplaced !== undefined) {
    return {
      why: `${misplaced} is a label there, and says something only as an annotation: write it under metadata.annotations`,
      remedy: `write ${misplaced} under metadata.annotations: it is a label there`,
    };
  }
  const remedy = writeAnnotation(metadata, workload);
  return { why: `nothing asks for it: ${remedy}`, remedy };
}

/** Returns why a pod is not delegated although the workload's next pods are. */
function whyNotThoughAsked(
  metadata: PodMetadata,
  mode: DelegationMode | undefined,
  isOfEarlierRun: boolean,
  workload: OwnWorkload | undefined,
): string {
  if (metadata.annotations?.[DELEGATE_ANNOTATION] === "false" && workload !== undefined) {
    const next = workload.kind === "CronJob" ? "its next run is delegated" : "delete them to have them made anew";
    return (
      `the annotation ${DELEGATE_ANNOTATION} is "false" there, and not in the pod template of ${workload.kind} ${workload.name}: ` +
      `${next}, unless something writes it on pods (a policy, an admission webhook), which is to leave these out`
    );
  }
  const read = parsePlacement(annotationsOf(metadata, workload));
  const isOverflow = mode !== undefined && read.ok && isOverflowMode(read.placement, mode);
  if (isOverflow && namesNode(metadata)) return NODE_WRITTEN;
  if (mode !== "annotated" || !isOfEarlierRun) return MADE_BEFORE;
  // A Job's template does not change.
  return (
    "this run's Job was made before delegation was asked for, and makes its pods anew as they are: " +
    `the next run of CronJob ${workload?.name} is delegated`
  );
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

// Kubernetes' own workloads that own other workloads.
const OUTER_KINDS: ReadonlySet<string> = new Set(["Deployment", "CronJob"]);

/** Returns why admission never delegates such a pod. Undefined if it may. */
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

/** Returns the command by which admission copies the workload's annotations into its template: an update. */
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

/** Reports whether the pod's creator set its node. A Binding leaves no managed fields. */
function namesNode({ managedFields = [] }: PodMetadata): boolean {
  return managedFields.some(({ fieldsV1 }) => {
    const { data } = writesNode.safeParse(fieldsV1);
    return data !== undefined && "f:nodeName" in data["f:spec"];
  });
}
