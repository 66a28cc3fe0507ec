import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { metadataShape } from "../api/object-shapes.ts";
import type { Resource } from "./resources.ts";
import { isRecord } from "./status.ts";

/** Reports whether the value has the fields that `Stored` promises. */
export function isStored<T extends KubeObject>(value: unknown): value is Stored<T> {
  if (!isRecord(value) || !isRecord(value.metadata)) return false;
  const { name, uid, resourceVersion } = value.metadata;
  return typeof name === "string" && typeof uid === "string" && typeof resourceVersion === "string";
}

/**
 * Reports whether the fields that this program reads have the promised types. An untrusted server may send anything, which
 * must not throw in code that also handles other clusters' objects.
 */
export function isWellFormed<T extends KubeObject>(resource: Resource<T>, object: Stored<T>): boolean {
  return metadataShape(object.metadata) && resource.shape?.(object) !== false;
}
