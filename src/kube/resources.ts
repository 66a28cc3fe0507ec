import {
  claimShape,
  clusterProfileShape,
  cronJobShape,
  dataShape,
  endpointSliceShape,
  eventShape,
  jobShape,
  metadataShape,
  networkPolicyShape,
  nodeShape,
  podShape,
  serviceExportShape,
  serviceImportShape,
  serviceShape,
} from "./internal/object-shapes.ts";
import type { JsonCheck } from "./internal/shape.ts";
import { isJsonObject } from "./json.ts";
import type {
  CertificateSigningRequest,
  ClusterProfile,
  ConfigMap,
  CronJob,
  Deployment,
  EndpointSlice,
  Job,
  KubeEvent,
  KubeNode,
  KubeObject,
  Lease,
  Namespace,
  NetworkPolicy,
  PersistentVolumeClaim,
  Pod,
  PriorityClass,
  RuntimeClass,
  Secret,
  Service,
  ServiceExport,
  ServiceImport,
  Stored,
} from "./objects.ts";

export interface Resource<T extends KubeObject> {
  /** API group; empty for core. */
  readonly group: string;
  readonly version: string;
  /** Plural as in URLs, e.g. `pods`. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Validates the fields of `T` beyond metadata; a response that fails it is rejected. Optional. */
  readonly shape?: JsonCheck;
  /** Carries `T` in the type system only; never set. */
  readonly objectType?: T;
}

/** A resource that a cluster may lack, or serve in one of several versions. */
export interface OptionalResource<T extends KubeObject> extends Omit<Resource<T>, "version"> {
  /** Versions whose objects the caller understands. */
  readonly versions: readonly [string, ...string[]];
  /** Time until a cluster that lacks it is asked again. Default: a minute. */
  readonly lookAgainMs?: number;
}

/** Returns the `apiVersion` of the resource's objects: `group/version`, or `v1` for the core group. */
export function apiVersionOf({ group, version }: Pick<Resource<KubeObject>, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}

/** Formats a resource: `pods`, `deployments.apps`. */
export function kindName({ group, plural }: Pick<Resource<KubeObject>, "group" | "plural">): string {
  return group === "" ? plural : `${plural}.${group}`;
}

export function isStored<T extends KubeObject>(value: unknown): value is Stored<T> {
  if (!isJsonObject(value) || !isJsonObject(value.metadata)) return false;
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

export const pods: Resource<Pod> = namespaced("", "Pod", podShape);
export const nodes: Resource<KubeNode> = clusterScoped("", "Node", nodeShape);
export const namespaces: Resource<Namespace> = clusterScoped("", "Namespace");
export const secrets: Resource<Secret> = namespaced("", "Secret", dataShape);
export const configMaps: Resource<ConfigMap> = namespaced("", "ConfigMap", dataShape);
export const serviceAccounts: Resource<KubeObject> = namespaced("", "ServiceAccount");
export const persistentVolumeClaims: Resource<PersistentVolumeClaim> = namespaced(
  "",
  "PersistentVolumeClaim",
  claimShape,
);
export const events: Resource<KubeEvent> = namespaced("", "Event", eventShape);
export const services: Resource<Service> = namespaced("", "Service", serviceShape);
export const replicationControllers: Resource<KubeObject> = namespaced("", "ReplicationController");
export const deployments: Resource<Deployment> = namespaced("apps", "Deployment");
export const replicaSets: Resource<KubeObject> = namespaced("apps", "ReplicaSet");
export const statefulSets: Resource<KubeObject> = namespaced("apps", "StatefulSet");
export const jobs: Resource<Job> = namespaced("batch", "Job", jobShape);
export const cronJobs: Resource<CronJob> = namespaced("batch", "CronJob", cronJobShape);
export const endpointSlices: Resource<EndpointSlice> = namespaced(
  "discovery.k8s.io",
  "EndpointSlice",
  endpointSliceShape,
);
export const networkPolicies: Resource<NetworkPolicy> = namespaced(
  "networking.k8s.io",
  "NetworkPolicy",
  networkPolicyShape,
);
export const leases: Resource<Lease> = namespaced("coordination.k8s.io", "Lease");
export const priorityClasses: Resource<PriorityClass> = clusterScoped("scheduling.k8s.io", "PriorityClass");
export const runtimeClasses: Resource<RuntimeClass> = clusterScoped("node.k8s.io", "RuntimeClass");
export const certificateSigningRequests: Resource<CertificateSigningRequest> = clusterScoped(
  "certificates.k8s.io",
  "CertificateSigningRequest",
);
export const customResourceDefinitions: Resource<KubeObject> = clusterScoped(
  "apiextensions.k8s.io",
  "CustomResourceDefinition",
);

const MULTICLUSTER = "multicluster.x-k8s.io";
/**
 * A resource of the Multi-Cluster Services API (KEP-1645). Both versions have the same fields (sigs.k8s.io/mcs-api, config/crd); its
 * release 0.4 and older serve only v1alpha1.
 */
export const serviceExports: OptionalResource<ServiceExport> = inVersions(
  namespaced(MULTICLUSTER, "ServiceExport", serviceExportShape),
  ["v1beta1", "v1alpha1"],
);
export const serviceImports: OptionalResource<ServiceImport> = inVersions(
  namespaced(MULTICLUSTER, "ServiceImport", serviceImportShape),
  serviceExports.versions,
);
/** A resource of the Cluster Inventory API (KEP-4322). */
export const clusterProfiles: OptionalResource<ClusterProfile> = inVersions(
  namespaced(MULTICLUSTER, "ClusterProfile", clusterProfileShape),
  ["v1alpha1"],
);

export function namespaced<T extends KubeObject>(group: string, kind: string, shape?: JsonCheck): Resource<T> {
  return { ...clusterScoped<T>(group, kind, shape), namespaced: true };
}

/** Returns a resource in version v1, with the plural that Kubernetes gives a kind (apimachinery, UnsafeGuessKindToResource). */
export function clusterScoped<T extends KubeObject>(group: string, kind: string, shape?: JsonCheck): Resource<T> {
  const singular = kind.toLowerCase();
  const plural = singular.endsWith("s") ? `${singular}es` : `${singular}s`.replace(/ys$/, "ies");
  return { group, version: "v1", plural, kind, namespaced: false, ...(shape === undefined ? {} : { shape }) };
}

export function inVersions<T extends KubeObject>(
  { version: _, ...resource }: Resource<T>,
  versions: OptionalResource<T>["versions"],
): OptionalResource<T> {
  return { ...resource, versions };
}
