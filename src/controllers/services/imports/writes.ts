import type { KubeObject, ServiceImport, Stored } from "../../../api/kubernetes.ts";
import { SERVICES } from "../../../copies/services.ts";
import { applyStatus } from "../../../kube/apply-status.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { resourceOf, type ServedResource } from "../../../kube/optional-resource.ts";
import {
  apiVersionOf,
  endpointSlices,
  type Resource,
  serviceExports,
  serviceImports,
  services,
} from "../../../kube/resources.ts";
import type { Expectation } from "../../../runtime/controller.ts";
import { refusedFields } from "../../copying/writer.ts";
import type { ImportAction, ObservedImport } from "./decide.ts";

/** Field manager of the status that Legation writes. */
export const MANAGER = "legation-mcs";

/** Returns the write's name for the write guard. */
export function nameOf({ kind, object }: ImportAction): string {
  return `${kind} ${object.metadata.name}`;
}

/** Returns what the write guard compares: the same write is held, and not another one. */
export function contentOf(action: ImportAction): string {
  switch (action.type) {
    case "create":
      return JSON.stringify(action.object);
    case "patch":
      return JSON.stringify(action.patch);
    case "delete":
      return action.object.metadata.uid;
    case "status":
      return action.clusters.join();
    case "conditions":
      return JSON.stringify(action.conditions);
  }
}

/** Sends a write. Undefined: a deletion, or the cluster serves no imports any more. Rejects with KubeError. */
export async function sendWrite(
  { client, served }: { readonly client: ClusterClient; readonly served: ServedResource<ServiceImport> },
  action: ImportAction,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | undefined> {
  const { namespace = "", name } = action.object.metadata;
  const ref = { namespace, name };
  if (action.type === "create") {
    const resource = action.kind === "import" ? await served.find(signal) : DERIVED[action.kind];
    if (resource === undefined) return undefined;
    const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...action.object };
    try {
      return await client.create(resource, object, { signal });
    } catch (error) {
      const less =
        action.kind === "service" && isKubeError(error, "Unprocessable")
          ? SERVICES.Service.fallback?.(refusedFields({ type: "refused", error }))
          : undefined;
      if (less === undefined) throw error;
      return client.create(resource, less.object(object), { signal });
    }
  }
  const resource = resourceOfWrite(action);
  const { uid } = action.object.metadata;
  if (action.type === "delete") {
    await client.delete(resource, ref, { uid, signal });
    return undefined;
  }
  if (action.type === "patch") {
    return client.patch(resource, ref, { type: "merge", body: action.patch }, { metadataOnly: true, signal });
  }
  const status =
    action.type === "status"
      ? { clusters: action.clusters.map((cluster) => ({ cluster })) }
      : { conditions: action.conditions };
  return applyStatus(client, resource, { ...ref, uid }, { status, fieldManager: MANAGER, force: true, signal });
}

const DERIVED: Readonly<Record<"service" | "slice", Resource<KubeObject>>> = {
  service: services,
  slice: endpointSlices,
};

function resourceOfWrite({ kind, object }: Exclude<ImportAction, { readonly type: "create" }>): Resource<KubeObject> {
  if (kind === "service" || kind === "slice") return DERIVED[kind];
  return kind === "conditions" ? resourceOf(serviceExports, object) : resourceOf(serviceImports, object);
}

/** Returns the expectation that the stores show the write. */
export function isShown(action: ImportAction): Expectation<ObservedImport> {
  const { name } = action.object.metadata;
  const there = (observed: ObservedImport): Stored<KubeObject> | undefined => {
    if (action.kind === "conditions") return observed.exported?.object;
    if (action.kind === "service") return observed.service;
    return action.kind === "slice" ? observed.slices.find(({ metadata }) => metadata.name === name) : observed.import;
  };
  if (action.type === "create") return (observed) => there(observed) !== undefined;
  const { resourceVersion } = action.object.metadata;
  return (observed) => there(observed)?.metadata.resourceVersion !== resourceVersion;
}
