import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { metadataShape } from "../api/object-shapes.ts";
import type { Resource } from "./resources.ts";
import { isRecord } from "./status.ts";

/** True for what an API server sends as an object: the fields that `Stored` promises are there. */
export function isStored<T extends KubeObject>(value: unknown): value is Stored<T> {
  if (!isRecord(value) || !isRecord(value.metadata)) return false;
  const { name, uid, resourceVersion } = value.metadata;
  return typeof name === "string" && typeof uid === "string" && typeof resourceVersion === "string";
}

/**
 * True when what is relied on in an object of this resource is of the types that its type promises. A member in the wrong
 * hands may send anything, and that must not throw where the objects of other members are worked on.
 */
export function isWellFormed<T extends KubeObject>(resource: Resource<T>, object: Stored<T>): boolean {
  return metadataShape(object.metadata) && resource.shape?.(object) !== false;
}
