import { jsonEqual } from "../../api/json.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { unionOfFields, withoutOwnedField } from "../../copies/field-paths.ts";
import { isManagedBy, isOwnManager } from "../../copies/owned-keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { findByList } from "../../kube/list.ts";
import type { Resource } from "../../kube/resources.ts";

interface ManagedCopy<T extends KubeObject> {
  readonly member: { readonly client: ClusterClient };
  readonly resource: Resource<T>;
  readonly ref: { readonly namespace: string; readonly name: string };
  readonly fieldManager: string;
  readonly signal: AbortSignal;
}

/** A copy, some of whose fields are to be owned otherwise before the next apply. */
export interface OwnedCopy<T extends KubeObject> extends ManagedCopy<T> {
  /** JSON pointers of applied fields that become the member's own, with their values. */
  readonly newlyRetained: readonly string[];
}

/**
 * Turns the fields that were written otherwise, at the creation say, into applied ones: the API server removes only what its
 * manager applied before (k8s.io/client-go/util/csaupgrade does so for kubectl). Gives up newly retained ones, which so stay.
 * Returns the new resourceVersion. Rejects with KubeError.
 */
export async function ownAsApplied<T extends KubeObject>({
  member: { client },
  resource,
  ref,
  fieldManager,
  newlyRetained,
  signal,
}: OwnedCopy<T>): Promise<string | undefined> {
  const there = await findByList(client, resource, ref, signal);
  const { managedFields = [], uid, resourceVersion } = there?.metadata ?? {};
  const isOurs = isManagedBy(fieldManager);
  const [first, ...rest] = managedFields.filter(isOurs);
  if (first === undefined) return resourceVersion;
  const owned = rest.reduce((all, entry) => unionOfFields(all, entry.fieldsV1 ?? {}), first.fieldsV1 ?? {});
  const fieldsV1 = newlyRetained.reduce((fields, pointer) => withoutOwnedField(fields, pointer, there), owned);
  const applied = { ...first, manager: fieldManager, operation: "Apply", fieldsV1 };
  if (rest.length === 0 && jsonEqual(applied, first)) return resourceVersion;
  const body = [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
    {
      op: "replace",
      path: "/metadata/managedFields",
      value: [applied, ...managedFields.filter((one) => !isOurs(one))],
    },
  ];
  const options = { signal, metadataOnly: true, dropManagedFields: true };
  const { metadata } = await client.patch(resource, ref, { type: "json", body }, options);
  return metadata.resourceVersion;
}

/** Returns the manager beside Legation that changed a copy last. Undefined if there is none, or the copy cannot be read. */
export async function lastOtherManager<T extends KubeObject>({
  member: { client },
  resource,
  ref,
  fieldManager,
  signal,
}: ManagedCopy<T>): Promise<string | undefined> {
  const there = await findByList(client, resource, ref, signal).catch(() => undefined);
  const others = (there?.metadata.managedFields ?? []).filter(
    ({ manager, subresource }) => subresource !== "status" && !isOwnManager(manager, fieldManager),
  );
  return others.toSorted((a, b) => ((a.time ?? "") < (b.time ?? "") ? 1 : -1))[0]?.manager;
}
