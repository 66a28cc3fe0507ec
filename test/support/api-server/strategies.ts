import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { jsonEqual } from "../../../src/api/json.ts";
import { apiVersionOf } from "../../../src/kube/resources.ts";
import type { StoredObject } from "./object-store.ts";
import type { ServedResource } from "./refusal.ts";

// What registry strategies do with an object of their type (kubernetes: pkg/registry/*/*/strategy.go).

const DEFAULT_GRACE_SECONDS = 30;

// Types whose strategy sets no generation.
const WITHOUT_GENERATION: ReadonlySet<string> = new Set([
  ...[
    "configmaps",
    "secrets",
    "serviceaccounts",
    "events",
    "nodes",
    "namespaces",
    "services",
    "persistentvolumeclaims",
  ],
  ...["leases", "clusterroles", "clusterrolebindings", "roles", "rolebindings", "certificatesigningrequests"],
]);

/** Returns the fields that name the type of a resource's objects. */
export function typeOf(resource: ServedResource): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind };
}

/** Returns the object as a create stores it: the status is left to who observes. */
export function createdState(resource: ServedResource, object: AnyObject): AnyObject {
  const { status, ...rest } = object;
  const generation = hasGeneration(resource) ? { generation: 1 } : {};
  const made = { ...rest, metadata: { ...rest.metadata, ...generation } };
  // A kubelet registers its node with the status.
  if (resource.plural === "nodes") return { ...made, ...(status === undefined ? {} : { status }) };
  return resource.plural === "pods" && resource.group === "" ? { ...made, status: { phase: "Pending" } } : made;
}

/** Returns the object after a write to it or to its subresource `status`: neither changes the other's part. */
export function statusWritten(
  resource: ServedResource,
  before: StoredObject,
  wanted: StoredObject,
  subresource: string | undefined,
): StoredObject {
  const { status: statusBefore, ...restBefore } = before;
  const { status, ...rest } = wanted;
  const { managedFields } = wanted.metadata;
  const kept = immutable(before, wanted);
  if (subresource !== "status") return { ...rest, ...optional(statusBefore), metadata: kept };
  // Custom resources keep their metadata, too (apiextensions-apiserver: customresource/status_strategy.go).
  const isCustom = resource.group.includes(".") && !resource.group.endsWith(".k8s.io");
  const metadata = isCustom
    ? { ...before.metadata, ...(managedFields === undefined ? {} : { managedFields }) }
    : { ...kept, ...(before.metadata.ownerReferences && { ownerReferences: before.metadata.ownerReferences }) };
  return { ...restBefore, ...optional(status), metadata };
}

/** Returns the object with the generation that follows from its change. */
export function withGeneration(resource: ServedResource, before: StoredObject, after: StoredObject): StoredObject {
  if (!hasGeneration(resource) || jsonEqual(contentOf(before), contentOf(after))) return after;
  const generation = (before.metadata.generation ?? 1) + 1;
  return { ...after, metadata: { ...after.metadata, generation } };
}

/** Returns the object as a deletion leaves it, or undefined when it goes. */
export function deletionOf(
  resource: ServedResource,
  object: StoredObject,
  graceSeconds: number | undefined,
  now: number,
): StoredObject | undefined {
  const { finalizers = [], deletionTimestamp, deletionGracePeriodSeconds: earlier } = object.metadata;
  const asked = resource.plural === "pods" && !endsAtOnce(object) ? (graceSeconds ?? DEFAULT_GRACE_SECONDS) : 0;
  const grace = Math.min(earlier ?? asked, asked);
  if (grace === 0 && finalizers.length === 0) return undefined;
  if (deletionTimestamp !== undefined && grace === earlier) return object;
  const deletedAt = `${new Date(now + grace * 1000).toISOString().slice(0, 19)}Z`;
  const times = { deletionTimestamp: deletedAt, deletionGracePeriodSeconds: grace };
  const generation = hasGeneration(resource) ? { generation: (object.metadata.generation ?? 1) + 1 } : {};
  return { ...object, metadata: { ...object.metadata, ...times, ...generation } };
}

/** Reports whether nothing holds an object that is being deleted. */
export function finalized({ metadata }: StoredObject): boolean {
  if (metadata.deletionTimestamp === undefined) return false;
  return (metadata.finalizers ?? []).length === 0 && (metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

/** A pod that no kubelet runs, or that has ended, has no grace period (registry/core/pod: CheckGracefulDelete). */
function endsAtOnce({ spec, status }: StoredObject & { readonly spec?: unknown; readonly status?: unknown }): boolean {
  const { nodeName = "" }: { readonly nodeName?: string } = { ...Object(spec) };
  const { phase }: { readonly phase?: string } = { ...Object(status) };
  return nodeName === "" || phase === "Succeeded" || phase === "Failed";
}

/** Returns the metadata of a change: no client changes identity, times and generation. */
function immutable({ metadata: before }: StoredObject, { metadata }: StoredObject): StoredObject["metadata"] {
  const {
    deletionTimestamp: _,
    deletionGracePeriodSeconds: __,
    creationTimestamp: ___,
    generation: ____,
    ...rest
  } = metadata;
  const { name, namespace, uid, resourceVersion, ...others } = before;
  const { creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation } = others;
  return {
    ...rest,
    ...(namespace === undefined ? {} : { namespace }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    ...(generation === undefined ? {} : { generation }),
    name,
    uid,
    resourceVersion,
  };
}

function contentOf({ metadata: _, status: __, ...rest }: StoredObject): object {
  return rest;
}

function hasGeneration({ plural }: ServedResource): boolean {
  return !WITHOUT_GENERATION.has(plural);
}

function optional(status: unknown): { readonly status?: unknown } {
  return status === undefined ? {} : { status };
}
