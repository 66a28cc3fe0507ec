import type { KubeObject, ServiceImport, Stored } from "../../../api/kubernetes.ts";
import { SERVICES } from "../../../copies/services.ts";
import { applyStatus } from "../../../kube/apply-status.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { resourceOf, type ServedResource } from "../../../kube/optional-resource.ts";
import {
  apiVersionOf,
  endpointSlices,
  type OptionalResource,
  type Resource,
  serviceExports,
  serviceImports,
  services,
} from "../../../kube/resources.ts";
import type { Expectation } from "../../../runtime/controller.ts";
import { refusedFields } from "../../copying/writer.ts";
import type { ImportAction, ImportKind, ObservedImport } from "./decide.ts";

/** Field manager of the status that Legation writes. */
export const MANAGER = "legation-mcs";

const RESOURCES: Readonly<Record<ImportKind, Resource<KubeObject> | OptionalResource<KubeObject>>> = {
  import: serviceImports,
  service: services,
  slice: endpointSlices,
  export: serviceExports,
};

/** Returns the write's name for the write guard. */
export function nameOf({ type, kind, object }: ImportAction): string {
  return `${type} ${kind} ${object.metadata.name}`;
}

/** Returns what the write guard compares: the same write is held, and not another one. */
export function contentOf(action: ImportAction): string {
  if (action.type === "delete") return action.object.metadata.uid;
  return JSON.stringify(action.type === "create" ? action.object : action.body);
}

/** Sends a write. Undefined: a deletion, or the cluster serves no imports any more. Rejects with KubeError. */
export async function sendWrite(
  { client, served }: { readonly client: ClusterClient; readonly served: ServedResource<ServiceImport> },
  action: ImportAction,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | undefined> {
  const { type, kind, object } = action;
  const { namespace = "", name } = object.metadata;
  const ref = { namespace, name };
  const known = RESOURCES[kind];
  const resource =
    "version" in known ? known : type === "create" ? await served.find(signal) : resourceOf(known, object);
  if (resource === undefined) return undefined;
  if (action.type === "create") return create(client, resource, action, signal);
  const { uid } = action.object.metadata;
  if (action.type === "delete") {
    await client.delete(resource, ref, { uid, signal });
    return undefined;
  }
  const { body } = action;
  return action.type === "patch"
    ? client.patch(resource, ref, { type: "merge", body }, { metadataOnly: true, signal })
    : applyStatus(client, resource, { ...ref, uid }, { status: body, fieldManager: MANAGER, force: true, signal });
}

async function create(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  { kind, object: content }: ImportAction,
  signal: AbortSignal,
): Promise<Stored<KubeObject>> {
  const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...content };
  try {
    return await client.create(resource, object, { signal });
  } catch (error) {
    if (kind !== "service" || !isKubeError(error, "Unprocessable")) throw error;
    const less = SERVICES.Service.fallback?.(refusedFields({ type: "refused", error }));
    if (less === undefined) throw error;
    return client.create(resource, less.object(object), { signal });
  }
}

/** Returns the expectation that the stores show the write. */
export function isShown(action: ImportAction): Expectation<ObservedImport> {
  const { name } = action.object.metadata;
  const before = action.type === "create" ? undefined : action.object.metadata.resourceVersion;
  return ({ import: made, service, slices, exported }) => {
    const slice = slices.find(({ metadata }) => metadata.name === name);
    const shown = { import: made, service, slice, export: exported?.object };
    return shown[action.kind]?.metadata.resourceVersion !== before;
  };
}
