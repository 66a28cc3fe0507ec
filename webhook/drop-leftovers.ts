import fastJsonPatch, { type Operation } from "fast-json-patch";
import { isJsonObject, type JsonObject, valueAt } from "../src/api/json.ts";
import {
  CLAIM_STATUS_ANNOTATION,
  CLUSTER_ANNOTATION,
  CLUSTERS_ANNOTATION,
  DELEGATE_FINALIZER,
  DELETION_COST_ANNOTATION,
  HOST_LABEL,
  INTERNAL_ANNOTATIONS,
  OWN_DELETION_COST_ANNOTATION,
  PROXY_LABEL,
  RESTRICTED_ANNOTATION,
  SCHEDULER_NAME,
  SCHEDULER_NAME_ANNOTATION,
  WHOLE_FINALIZER,
  WHOLE_KEY,
  WHOLE_MANAGED_BY,
} from "../src/api/keys.ts";
import { WHOLE_LOAD_BALANCER_CLASS } from "../src/api/service-fields.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { MIRROR_ANNOTATION } from "./mutate-pod.ts";
import { isVirtualNode } from "./pod-fields.ts";
import { allowed, patched, type Verdict } from "./responses.ts";
import { asksWhole, type FindType, wholeKindOf } from "./whole.ts";

/** A mark that an object brings along from another one, and the operation that removes it. */
export interface Leftover {
  readonly name: string;
  readonly operation: Operation;
}

/**
 * Drops marks that an object has on creation, from an export or a backup: they are no claim. Runs before the handlers that mark
 * objects. Admission policies refuse the marks that remain.
 */
export function dropLeftovers(
  { object, kind, operation }: AdmissionRequest,
  isOptedIn: boolean,
  findType: FindType,
): Verdict {
  if (object === undefined || operation !== "CREATE") return allowed();
  const { labels, annotations } = object.metadata;
  // Another host's objects in this cluster have that host's marks.
  if (labels?.[HOST_LABEL] !== undefined || annotations?.[MIRROR_ANNOTATION] !== undefined) return allowed();
  const leftovers =
    kind.group === "" && kind.kind === "Pod"
      ? leftoversOfPod(object)
      : [...leftAnnotations(object), ...wholeMarks(object, kind, isOptedIn, findType)];
  return patched(
    leftovers.map(({ operation: removal }) => removal),
    leftoverWarnings(leftovers),
  );
}

function leftoversOfPod(pod: ReviewedObject): Leftover[] {
  const path = ["spec", "schedulerName"];
  const author = pod.metadata.annotations?.[SCHEDULER_NAME_ANNOTATION];
  const operation: Operation =
    author === undefined ? remove(path) : { op: "replace", path: pointer(path), value: author };
  return [
    ...leftoversOfTemplate(pod),
    ...finalizerOf(pod, DELEGATE_FINALIZER),
    ...(valueAt(pod, path) === SCHEDULER_NAME ? [{ name: `spec.schedulerName ${SCHEDULER_NAME}`, operation }] : []),
    ...proxyLabel(pod),
  ];
}

/** Returns the marks that keep pods of the template at a path from being created. Each new pod loses the others by itself. */
export function leftoversOfTemplate(object: JsonObject, path: readonly string[] = []): Leftover[] {
  const at = [...path, "spec", "nodeName"];
  const nodeName = valueAt(object, at);
  const isVirtual = typeof nodeName === "string" && isVirtualNode(nodeName);
  return [...leftAnnotations(object, path), ...(isVirtual ? [{ name: "spec.nodeName", operation: remove(at) }] : [])];
}

// The API server truncates longer warnings.
const NAMES_IN_ONE = 5;

/** Returns warnings that name the leftovers of an object, or of its part `where`. */
export function leftoverWarnings(leftovers: readonly Leftover[], where = ""): string[] {
  const names = leftovers.map(({ name }) => name);
  return Array.from({ length: Math.ceil(names.length / NAMES_IN_ONE) }, (_, index) => {
    const named = names.slice(index * NAMES_IN_ONE, (index + 1) * NAMES_IN_ONE).join(", ");
    return `${where}${named}: dropped, as left over from another object${meantMembers(leftovers)}`;
  });
}

/** A mark of a decision never comes alone: alone, it is an author's, who means the annotation of nearly that name. */
function meantMembers(leftovers: readonly Leftover[]): string {
  const [first, ...others] = leftovers;
  const isAlone = first?.name === `annotation ${CLUSTER_ANNOTATION}` && others.length === 0;
  return isAlone ? `; ${CLUSTERS_ANNOTATION} names members` : "";
}

/**
 * Returns the annotations that only Legation writes, on an object or its part at a path. The record of restricted objects is no
 * claim: the API server asks for the verb on what it names.
 */
export function leftAnnotations(object: JsonObject, path: readonly string[] = []): Leftover[] {
  const at = [...path, "metadata", "annotations"];
  const annotations = fieldsAt(object, at);
  const cost = annotations[OWN_DELETION_COST_ANNOTATION];
  const isOwnCost = cost !== undefined && annotations[DELETION_COST_ANNOTATION] === cost;
  return Object.keys(annotations)
    .filter(
      (key) =>
        (INTERNAL_ANNOTATIONS.has(key) && key !== RESTRICTED_ANNOTATION) ||
        key === CLAIM_STATUS_ANNOTATION ||
        (isOwnCost && key === DELETION_COST_ANNOTATION),
    )
    .map((key) => ({ name: `annotation ${key}`, operation: remove([...at, key]) }));
}

/** A controller whose selector names the label would create pods for ever if each new one lost it. */
function proxyLabel({ metadata }: ReviewedObject): Leftover[] {
  const isOwned = metadata.ownerReferences?.some(({ controller }) => controller === true) === true;
  return isOwned ? [] : labelOf({ metadata }, [], PROXY_LABEL);
}

/** Returns the marks of an object that members have, on one that they are not to have. */
function wholeMarks(
  object: ReviewedObject,
  kind: AdmissionRequest["kind"],
  isOptedIn: boolean,
  findType: FindType,
): Leftover[] {
  const { part, managedBy, isOfServices } = wholeKindOf(kind, findType);
  if (isOptedIn && asksWhole(fieldsAt(object, part))) return [];
  return [
    ...labelOf(object, part, WHOLE_KEY),
    ...finalizerOf(object, WHOLE_FINALIZER),
    ...(managedBy === undefined ? [] : fieldOf(object, [...part, ...managedBy], WHOLE_MANAGED_BY)),
    ...(isOfServices ? fieldOf(object, ["spec", "loadBalancerClass"], WHOLE_LOAD_BALANCER_CLASS) : []),
  ];
}

function labelOf(object: JsonObject, path: readonly string[], key: string): Leftover[] {
  const at = [...path, "metadata", "labels", key];
  return valueAt(object, at) === undefined ? [] : [{ name: `label ${key}`, operation: remove(at) }];
}

function fieldOf(object: JsonObject, path: readonly string[], value: string): Leftover[] {
  return valueAt(object, path) === value ? [{ name: path.join("."), operation: remove(path) }] : [];
}

function finalizerOf({ metadata: { finalizers = [] } }: ReviewedObject, finalizer: string): Leftover[] {
  if (!finalizers.includes(finalizer)) return [];
  const value = finalizers.filter((other) => other !== finalizer);
  return [{ name: `finalizer ${finalizer}`, operation: { op: "replace", path: "/metadata/finalizers", value } }];
}

function fieldsAt(object: JsonObject, path: readonly string[]): JsonObject {
  const fields = valueAt(object, path);
  return isJsonObject(fields) ? fields : {};
}

function remove(path: readonly string[]): Operation {
  return { op: "remove", path: pointer(path) };
}

function pointer(path: readonly string[]): string {
  return path.map((field) => `/${fastJsonPatch.escapePathComponent(field)}`).join("");
}
