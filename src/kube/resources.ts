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
  serviceShape,
} from "./internal/object-shapes.ts";
import type { JsonCheck } from "./internal/shape.ts";
import { isRecord } from "./json.ts";
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
  Stored,
} from "./objects.ts";

/** An API resource; `T` is the type of its objects. */
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
export function apiVersionOf(resource: Resource<KubeObject>): string {
  return resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
}

/** Formats a resource: `pods`, `deployments.apps`. */
export function kindName({ group, plural }: Pick<Resource<KubeObject>, "group" | "plural">): string {
  return group === "" ? plural : `${plural}.${group}`;
}

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

const core = { group: "", version: "v1" } as const;
export const pods: Resource<Pod> = { ...core, plural: "pods", kind: "Pod", namespaced: true, shape: podShape };
export const nodes: Resource<KubeNode> = {
  ...core,
  plural: "nodes",
  kind: "Node",
  namespaced: false,
  shape: nodeShape,
};
export const namespaces: Resource<Namespace> = { ...core, plural: "namespaces", kind: "Namespace", namespaced: false };
export const secrets: Resource<Secret> = {
  ...core,
  plural: "secrets",
  kind: "Secret",
  namespaced: true,
  shape: dataShape,
};
export const configMaps: Resource<ConfigMap> = {
  ...core,
  plural: "configmaps",
  kind: "ConfigMap",
  namespaced: true,
  shape: dataShape,
};
export const serviceAccounts: Resource<KubeObject> = {
  ...core,
  plural: "serviceaccounts",
  kind: "ServiceAccount",
  namespaced: true,
};
export const persistentVolumeClaims: Resource<PersistentVolumeClaim> = {
  ...core,
  plural: "persistentvolumeclaims",
  kind: "PersistentVolumeClaim",
  namespaced: true,
  shape: claimShape,
};
const apps = { group: "apps", version: "v1", namespaced: true } as const;
export const deployments: Resource<Deployment> = { ...apps, plural: "deployments", kind: "Deployment" };
export const replicaSets: Resource<KubeObject> = { ...apps, plural: "replicasets", kind: "ReplicaSet" };
export const statefulSets: Resource<KubeObject> = { ...apps, plural: "statefulsets", kind: "StatefulSet" };
export const replicationControllers: Resource<KubeObject> = {
  ...core,
  plural: "replicationcontrollers",
  kind: "ReplicationController",
  namespaced: true,
};
export const jobs: Resource<Job> = {
  group: "batch",
  version: "v1",
  plural: "jobs",
  kind: "Job",
  namespaced: true,
  shape: jobShape,
};
export const cronJobs: Resource<CronJob> = {
  group: "batch",
  version: "v1",
  plural: "cronjobs",
  kind: "CronJob",
  namespaced: true,
  shape: cronJobShape,
};
export const events: Resource<KubeEvent> = {
  ...core,
  plural: "events",
  kind: "Event",
  namespaced: true,
  shape: eventShape,
};
export const services: Resource<Service> = {
  ...core,
  plural: "services",
  kind: "Service",
  namespaced: true,
  shape: serviceShape,
};
export const endpointSlices: Resource<EndpointSlice> = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  kind: "EndpointSlice",
  namespaced: true,
  shape: endpointSliceShape,
};
/**
 * A resource of the Multi-Cluster Services API (KEP-1645). Both versions have the same fields (sigs.k8s.io/mcs-api, config/crd); its
 * release 0.4 and older serve only v1alpha1.
 */
export const serviceExports: OptionalResource<ServiceExport> = {
  group: "multicluster.x-k8s.io",
  versions: ["v1beta1", "v1alpha1"],
  plural: "serviceexports",
  kind: "ServiceExport",
  namespaced: true,
  shape: serviceExportShape,
};
/** A resource of the Cluster Inventory API (KEP-4322). */
export const clusterProfiles: OptionalResource<ClusterProfile> = {
  group: "multicluster.x-k8s.io",
  versions: ["v1alpha1"],
  plural: "clusterprofiles",
  kind: "ClusterProfile",
  namespaced: true,
  shape: clusterProfileShape,
};
export const networkPolicies: Resource<NetworkPolicy> = {
  group: "networking.k8s.io",
  version: "v1",
  plural: "networkpolicies",
  kind: "NetworkPolicy",
  namespaced: true,
  shape: networkPolicyShape,
};
export const priorityClasses: Resource<PriorityClass> = {
  group: "scheduling.k8s.io",
  version: "v1",
  plural: "priorityclasses",
  kind: "PriorityClass",
  namespaced: false,
};
export const runtimeClasses: Resource<RuntimeClass> = {
  group: "node.k8s.io",
  version: "v1",
  plural: "runtimeclasses",
  kind: "RuntimeClass",
  namespaced: false,
};
export const leases: Resource<Lease> = {
  group: "coordination.k8s.io",
  version: "v1",
  plural: "leases",
  kind: "Lease",
  namespaced: true,
};
export const certificateSigningRequests: Resource<CertificateSigningRequest> = {
  group: "certificates.k8s.io",
  version: "v1",
  plural: "certificatesigningrequests",
  kind: "CertificateSigningRequest",
  namespaced: false,
};
export const customResourceDefinitions: Resource<KubeObject> = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
};
