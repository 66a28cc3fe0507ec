import type { KubeObject, ObjectRef, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ignoring, isKubeError } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";

export interface RemovalOptions {
  readonly signal: AbortSignal;
  /** Deletes only the object with this uid, not a new one of the same name. */
  readonly uid?: string;
  readonly gracePeriodSeconds?: number;
}

/** Deletes an object. Returns false if it was gone already, or replaced by another of its name. */
export async function remove(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  ref: ObjectRef,
  options: RemovalOptions,
): Promise<boolean> {
  const deleted = client.delete(resource, ref, { propagationPolicy: "Background", ...options }).then(() => true);
  return (await (options.uid === undefined ? ignoring(deleted, "NotFound") : unlessGone(deleted))) ?? false;
}

/** Waits for a change of one object, named by its uid. Resolves to undefined if it is gone, or a new one has its name. */
export function unlessGone<T>(change: Promise<T>): Promise<T | undefined> {
  return ignoring(change, "NotFound", "Conflict");
}

export function refOf(object: { readonly namespace?: string | undefined; readonly name: string }): ObjectRef {
  const { namespace, name } = object;
  return namespace === undefined ? { name } : { namespace, name };
}

/** Removes one finalizer, also beside concurrent writes. Returns false if admission put it back. */
export async function dropFinalizer(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  object: Stored<KubeObject>,
  finalizer: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { uid } = object.metadata;
  const ref = refOf(object.metadata);
  let current: Stored<KubeObject> | undefined = object;
  while (current !== undefined && current.metadata.uid === uid) {
    const index: number = current.metadata.finalizers?.indexOf(finalizer) ?? -1;
    if (index === -1) return true;
    const path = `/metadata/finalizers/${index}`;
    const body = [
      { op: "test", path: "/metadata/uid", value: uid },
      { op: "test", path, value: finalizer },
      { op: "remove", path },
    ];
    try {
      const { metadata } = await client.patch(resource, ref, { type: "json", body }, { signal });
      return metadata.finalizers?.includes(finalizer) !== true;
    } catch (error) {
      // A failed test of a JSON patch is 422: the object changed since it was read.
      if (!isKubeError(error, "NotFound", "Conflict", "Unprocessable")) throw error;
      const next: Stored<KubeObject> | undefined = await client.find(resource, ref, { signal });
      if (next?.metadata.resourceVersion === current.metadata.resourceVersion) throw error;
      current = next;
    }
  }
  return true;
}
