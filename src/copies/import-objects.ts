import { isJsonObject, type JsonObject, jsonEqual } from "../api/json.ts";
import { HOST_LABEL, MANAGED_BY, MANAGED_BY_LABEL } from "../api/keys.ts";
import type { KubeObject, OwnerReference, Service, ServiceImport, Stored } from "../api/kubernetes.ts";
import { addressKindOf, IMPORTED_LABEL } from "../api/service-fields.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { fingerprint } from "../pods/fingerprints.ts";
import { copiedAnnotations, copiedLabels } from "./copy-metadata.ts";
import type { ImportedSlice } from "./import-slices.ts";
import { derivedServiceName, type MergedExports } from "./service-imports.ts";
import { SERVICE_NAME_LABEL, SLICE_MANAGER_LABEL } from "./services.ts";

/** Label of KEP-1645: the cluster that exports an EndpointSlice's endpoints. */
export const SOURCE_CLUSTER_LABEL = "multicluster.kubernetes.io/source-cluster";
/** Manager, by its label, of the EndpointSlices of imports. */
const IMPORT_SLICE_MANAGER = "mcs.legation.dev";
// The implementation of the API's authors writes the same key.
const DERIVED_SERVICE_ANNOTATION = "multicluster.kubernetes.io/derived-service";

interface Ref {
  readonly namespace: string;
  readonly name: string;
}

/** An object of an import, with every field that is Legation's. A field without a value is to be absent. */
export interface ImportObject {
  readonly metadata: Pick<Stored<KubeObject>["metadata"], "labels" | "annotations" | "ownerReferences"> & Ref;
  readonly [content: string]: unknown;
}

export function isOwnImport({ metadata }: KubeObject, host: HostIdentity): boolean {
  return metadata?.labels?.[HOST_LABEL] === host.id && metadata.labels[MANAGED_BY_LABEL] === MANAGED_BY;
}

function marks(host: HostIdentity): Record<string, string> {
  return { [HOST_LABEL]: host.id, [MANAGED_BY_LABEL]: MANAGED_BY };
}

/** Returns the ServiceImport, with the addresses of its Service once these are known. */
export function importObject(
  { namespace, name }: Ref,
  { spec, labels, annotations }: MergedExports,
  service: Stored<Service> | undefined,
  host: HostIdentity,
): ImportObject {
  const { clusterIPs, ipFamilies } = service?.spec ?? {};
  const ips = spec.type === "Headless" ? undefined : clusterIPs;
  return {
    metadata: {
      namespace,
      name,
      // A member that exports sets no marks.
      labels: { ...copiedLabels(labels), ...marks(host) },
      annotations: { ...copiedAnnotations(annotations), [DERIVED_SERVICE_ANNOTATION]: derivedServiceName(name) },
    },
    spec: { ...spec, ips, ipFamilies },
  };
}

/** Returns the Service that kube-proxy and DNS serve an import by. */
export function derivedService(
  { namespace, name }: Ref,
  { spec, ipFamilies }: MergedExports,
  { owner, isNew }: { readonly owner: Stored<ServiceImport>; readonly isNew: boolean },
  host: HostIdentity,
): ImportObject {
  const { type, ports, ...rest } = spec;
  return {
    metadata: {
      namespace,
      name: derivedServiceName(name),
      labels: { [IMPORTED_LABEL]: name, ...marks(host) },
      ownerReferences: ownedBy(owner),
    },
    spec: {
      ...rest,
      ports,
      ipFamilyPolicy: ipFamilies.length > 1 ? "PreferDualStack" : "SingleStack",
      // The API server refuses another first family later.
      ...(isNew && ipFamilies.length > 0 ? { ipFamilies } : {}),
      ...(type === "Headless" ? { clusterIP: "None" } : {}),
    },
  };
}

/** Returns an EndpointSlice of the derived Service. */
export function importSlice(
  { namespace, name }: Ref,
  { source, cluster, addressType, ports, endpoints }: ImportedSlice,
  owner: Stored<ServiceImport>,
  host: HostIdentity,
): ImportObject {
  const service = derivedServiceName(name);
  const place = cluster === undefined ? service : `${service}-${cluster}`;
  return {
    metadata: {
      namespace,
      name: `${place}-${fingerprint(source)}`,
      labels: {
        [SERVICE_NAME_LABEL]: service,
        [IMPORTED_LABEL]: name,
        [SOURCE_CLUSTER_LABEL]: cluster ?? host.name,
        [SLICE_MANAGER_LABEL]: IMPORT_SLICE_MANAGER,
        ...marks(host),
      },
      ownerReferences: ownedBy(owner),
    },
    addressType,
    ports,
    endpoints,
  };
}

/** Returns the garbage collector's reference: all goes with the import, also while no controller leads. */
function ownedBy({ apiVersion = "", metadata: { name, uid } }: Stored<ServiceImport>): OwnerReference[] {
  return [{ apiVersion, kind: "ServiceImport", name, uid, controller: true }];
}

/** Reports whether the Service must be made again: it gets and loses its cluster IP with its life. */
export function isOfAnotherType(there: Stored<Service>, wanted: ImportObject): boolean {
  return addressKindOf(there) !== addressKindOf(wanted);
}

/** Returns the merge patch of an object that lacks wanted fields, or has others in their place. Undefined: it is right. */
export function importPatch(there: Stored<KubeObject>, { metadata, ...content }: ImportObject): object | undefined {
  const { uid, labels = {}, annotations = {}, ownerReferences } = there.metadata;
  // An import has the exported labels and annotations alone. Other controllers may label Services and slices.
  const rest = metadata.annotations === undefined ? () => ({}) : cleared;
  const wanted = {
    ...content,
    labels: { ...rest(labels), ...metadata.labels },
    annotations: { ...rest(annotations), ...metadata.annotations },
    owner: metadata.ownerReferences?.[0]?.uid,
  };
  const isRight = includes({ ...there, labels, annotations, owner: ownerReferences?.[0]?.uid }, wanted);
  if (isRight) return undefined;
  const { ownerReferences: owners } = metadata;
  return {
    ...content,
    ...(isJsonObject(content.spec) && { spec: nulled(content.spec) }),
    metadata: {
      uid,
      labels: nulled(wanted.labels),
      annotations: nulled(wanted.annotations),
      ...(owners && { ownerReferences: owners }),
    },
  };
}

/** Returns the map's keys without values. */
function cleared(map: JsonObject): JsonObject {
  return Object.fromEntries(Object.keys(map).map((key) => [key, undefined]));
}

function nulled(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, value ?? null]));
}

/** Reports whether the object has the wanted fields. The API server gives ports of a Service further ones. */
function includes(there: JsonObject, wanted: JsonObject): boolean {
  return Object.entries(wanted).every(([field, value]) => {
    const has = there[field];
    if (field === "ports" && Array.isArray(has)) return jsonEqual(has.map(comparablePort), value);
    return isJsonObject(has) && isJsonObject(value) && DEEP.has(field) ? includes(has, value) : jsonEqual(has, value);
  });
}

function comparablePort(port: unknown): unknown {
  if (!isJsonObject(port)) return port;
  const { name, protocol, appProtocol, port: number } = port;
  return { name, protocol, appProtocol, port: number };
}

const DEEP: ReadonlySet<string> = new Set(["spec", "labels", "annotations"]);
