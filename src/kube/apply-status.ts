import type { ClusterClient } from "./client.ts";
import type { KubeObject, ObjectRef, Stored } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resources.ts";

export interface AppliedStatus {
  readonly status: object;
  readonly fieldManager: string;
  /** Takes fields from other managers. */
  readonly force: boolean;
  readonly signal: AbortSignal;
}

/** Applies a part of the status of an object. Its uid is a precondition, and its resourceVersion if it is given. Rejects with KubeError. */
export function applyStatus<T extends KubeObject>(
  client: ClusterClient,
  resource: Resource<T>,
  { namespace, name, ...preconditions }: ObjectRef & { readonly uid: string; readonly resourceVersion?: string },
  { status, fieldManager, force, signal }: AppliedStatus,
): Promise<Stored<T>> {
  const ref = namespace === undefined ? { name } : { namespace, name };
  const metadata = { ...ref, ...preconditions };
  const body = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, status };
  const options = { subresource: "status", fieldManager, metadataOnly: true, signal };
  return client.patch(resource, ref, { type: "apply", body, force }, options);
}
