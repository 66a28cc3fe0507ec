import { APPLIED_ANNOTATION, GROUP, HOST_LABEL, WHOLE_KEY } from "../../../api/keys.ts";
import type { KubeObject, Stored } from "../../../api/kubernetes.ts";
import { isDerived } from "../../../copies/kind.ts";
import { SERVICE_NAME_LABEL, SERVICES } from "../../../copies/services.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { ignoring } from "../../../kube/errors.ts";
import { customResourceDefinitions, endpointSlices, type Resource } from "../../../kube/resources.ts";
import { ownerOf } from "../../../pods/delegate.ts";

export interface LeftBehind {
  readonly client: ClusterClient;
  readonly resource: Resource<KubeObject>;
  readonly copy: Stored<KubeObject>;
  readonly signal: AbortSignal;
}

/** Without these it is an object of the member's own. */
export const ALL_MARKS = (key: string): boolean => key.startsWith(`${GROUP}/`);
/** Without these it is a copy for pods alone. */
export const MARKS_OF_WHOLE = (key: string): boolean => key === WHOLE_KEY || key === APPLIED_ANNOTATION;

/** Removes labels and annotations from a copy. Rejects with KubeError. */
export async function removeMarks(
  { client, resource, copy, signal }: LeftBehind,
  isMark: (key: string) => boolean,
): Promise<void> {
  const { namespace = "", name, uid, labels = {}, annotations = {} } = copy.metadata;
  const nulls = (map: Readonly<Record<string, string>>): Record<string, null> =>
    Object.fromEntries(Object.keys(map).flatMap((key) => (isMark(key) ? [[key, null]] : [])));
  const body = { metadata: { uid, labels: nulls(labels), annotations: nulls(annotations) } };
  const ref = { namespace, name };
  const patch = client.patch(resource, ref, { type: "merge", body }, { signal, metadataOnly: true });
  // The watch tells what has changed.
  await ignoring(patch, "Conflict", "NotFound");
}

/** Leaves the copied EndpointSlices of a Service without a selector with it. Rejects with KubeError. */
export async function leaveSlices({ client, copy, signal }: LeftBehind): Promise<void> {
  const { namespace = "", name, labels } = copy.metadata;
  const hostId = labels?.[HOST_LABEL] ?? "";
  const { labelSelector: ofCopies } = SERVICES.EndpointSlice.copies ?? {};
  const labelSelector = `${HOST_LABEL}=${hostId},${SERVICE_NAME_LABEL}=${name},${ofCopies}`;
  const { items } = await client.list(endpointSlices, { namespace, labelSelector, signal });
  for (const slice of items) {
    // A client of the member derived it from another slice.
    if (ownerOf(slice) !== undefined && isDerived(slice, SERVICES.EndpointSlice, hostId)) continue;
    await removeMarks({ client, resource: endpointSlices, copy: slice, signal }, ALL_MARKS);
  }
}

/** Reports whether a copy's source went with its CustomResourceDefinition: that is being deleted, or newer than the copy. `isOfFound`: the source is still there. Rejects with KubeError. */
export async function isDefinitionLost(
  host: ClusterClient,
  { resource, copy, isOfFound, signal }: Omit<LeftBehind, "client"> & { readonly isOfFound: boolean },
): Promise<boolean> {
  const { group, plural } = resource;
  if (!group.includes(".")) return false;
  const found = await host.find(customResourceDefinitions, { name: `${plural}.${group}` }, { signal });
  // APIs without a definition come from an aggregated API server.
  if (found === undefined) return false;
  const { deletionTimestamp, creationTimestamp = "" } = found.metadata;
  if (deletionTimestamp !== undefined) return true;
  // A source of the new definition took over the copy, and is deleted by its author.
  if (isOfFound) return false;
  return Date.parse(creationTimestamp) > Date.parse(copy.metadata.creationTimestamp ?? "");
}
