import type {
  CoreV1Event,
  V1CertificateSigningRequest,
  V1ConfigMap,
  V1Container,
  V1ContainerStatus,
  V1CronJob,
  V1Deployment,
  V1EndpointSlice,
  V1Job,
  V1Lease,
  V1Namespace,
  V1Node,
  V1NodeCondition,
  V1NodeSelectorTerm,
  V1NodeStatus,
  V1NodeSystemInfo,
  V1ObjectMeta,
  V1OwnerReference,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodCondition,
  V1PodSpec,
  V1PodStatus,
  V1PriorityClass,
  V1RuntimeClass,
  V1Secret,
  V1Service,
  V1Taint,
  V1Toleration,
  V1Volume,
} from "@kubernetes/client-node";

/**
 * A client-node type as JSON, with RFC 3339 strings for `Date`. Objects never become client-node's models, so
 * unknown fields survive every round trip.
 */
type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [Key in keyof T]: Wire<T[Key]> }
      : T;

export type ObjectMeta = Wire<V1ObjectMeta>;
export type OwnerReference = Wire<V1OwnerReference>;

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** An object as an API server returned it, always with name, uid and resourceVersion. */
export type Stored<T extends KubeObject> = T & {
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string };
};

export type Deployment = Wire<V1Deployment>;
export type Job = Wire<V1Job>;
export type CronJob = Wire<V1CronJob>;
export type Pod = Wire<V1Pod>;
export type PodSpec = Wire<V1PodSpec>;
export type PodStatus = Wire<V1PodStatus>;
export type PodCondition = Wire<V1PodCondition>;
export type Container = Wire<V1Container>;
export type ContainerStatus = Wire<V1ContainerStatus>;
export type Volume = Wire<V1Volume>;
export type Toleration = Wire<V1Toleration>;
export type Taint = Wire<V1Taint>;
export type KubeNode = Wire<V1Node>;
export type NodeStatus = Wire<V1NodeStatus>;
export type NodeSelectorTerm = Wire<V1NodeSelectorTerm>;
export type NodeCondition = Wire<V1NodeCondition>;
export type NodeSystemInfo = Wire<V1NodeSystemInfo>;
/** Quantities by resource name, as on the wire. */
export type ResourceList = Readonly<Record<string, string>>;
export type Namespace = Wire<V1Namespace>;
export type Secret = Wire<V1Secret>;
export type ConfigMap = Wire<V1ConfigMap>;
export type Service = Wire<V1Service>;
export type EndpointSlice = Wire<V1EndpointSlice>;
export type PersistentVolumeClaim = Wire<V1PersistentVolumeClaim>;
export type Lease = Wire<V1Lease>;
export type CertificateSigningRequest = Wire<V1CertificateSigningRequest>;
export type KubeEvent = Wire<CoreV1Event>;
export type PriorityClass = Wire<V1PriorityClass>;
export type RuntimeClass = Wire<V1RuntimeClass>;
/** A ServiceExport of the Multi-Cluster Services API (KEP-1645), as far as it is read. */
export interface ServiceExport extends KubeObject {
  spec?: {
    readonly exportedLabels?: Readonly<Record<string, string>>;
    readonly exportedAnnotations?: Readonly<Record<string, string>>;
  } | null;
  status?: { readonly conditions?: readonly ExportCondition[] | null } | null;
}
export interface ExportCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
}

/** A ServiceImport of the Multi-Cluster Services API (KEP-1645), as far as it is read. */
export interface ServiceImport extends KubeObject {
  spec?: ServiceImportSpec;
  status?: {
    readonly clusters?: readonly { readonly cluster: string }[] | null;
    readonly conditions?: readonly ExportCondition[] | null;
  } | null;
}
export interface ServiceImportSpec {
  readonly type: "ClusterSetIP" | "Headless";
  readonly ports: readonly ImportedPort[];
  readonly ips?: readonly string[] | undefined;
  readonly ipFamilies?: readonly string[] | undefined;
  readonly sessionAffinity?: string | undefined;
  readonly sessionAffinityConfig?: object | undefined;
  readonly internalTrafficPolicy?: string | undefined;
  readonly trafficDistribution?: string | undefined;
}
export interface ImportedPort {
  readonly name?: string;
  readonly protocol?: string;
  readonly appProtocol?: string;
  readonly port: number;
}

/** A ClusterProfile of the Cluster Inventory API (KEP-4322), as far as it is read. */
export interface ClusterProfile extends KubeObject {
  spec?: { readonly displayName?: string; readonly clusterManager?: { readonly name?: string } };
  status?: ClusterProfileStatus | null;
}
export interface ClusterProfileStatus {
  readonly version?: { readonly kubernetes?: string };
  readonly properties?: readonly ClusterProperty[] | null;
  readonly accessProviders?: readonly AccessProvider[] | null;
  readonly conditions?: readonly ExportCondition[] | null;
}
export interface ClusterProperty {
  readonly name: string;
  readonly value: string;
}
/** A way to the cluster, for readers that have a credential plugin of that name (KEP-5339). `cluster` is as in a kubeconfig. */
export interface AccessProvider {
  readonly name: string;
  readonly cluster?: object;
}

/** A NetworkPolicy, as far as it is read. client-node's type renames the field `from`. */
export interface NetworkPolicy extends KubeObject {
  spec?: {
    readonly podSelector?: WireLabelSelector | null;
    readonly ingress?: readonly { readonly from?: readonly NetworkPolicyPeer[] | null }[] | null;
    readonly egress?: readonly { readonly to?: readonly NetworkPolicyPeer[] | null }[] | null;
  };
}
export interface NetworkPolicyPeer {
  readonly podSelector?: WireLabelSelector | null;
  readonly namespaceSelector?: object | null;
  readonly ipBlock?: object | null;
}
export interface WireLabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | null;
}

/** Identifies an object in a cluster. Cluster-scoped objects have no namespace. */
export interface ObjectRef {
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** The claims of a service account token. Times are epoch ms. */
export interface TokenClaims {
  readonly namespace: string;
  readonly name: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
}

declare const objectKeyBrand: unique symbol;
/** `namespace/name`, or `name` for cluster-scoped objects: the key of stores and work queues. */
export type ObjectKey = string & { readonly [objectKeyBrand]: true };

export function objectKey(ref: { readonly namespace?: string | undefined; readonly name?: string }): ObjectKey {
  return ((ref.namespace ?? "") === "" ? (ref.name ?? "") : `${ref.namespace}/${ref.name ?? ""}`) as ObjectKey;
}

export function objectRef(key: ObjectKey): ObjectRef {
  const slash = key.indexOf("/");
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Returns a key of a Secret as text. Undefined without the Secret or the key. */
export function secretText(secret: Secret | undefined, key: string): string | undefined {
  const data = secret?.data ?? {};
  const encoded = Object.hasOwn(data, key) ? data[key] : undefined;
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

export function secretData(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString("base64")]));
}

/** Formats epoch ms as `metav1.Time`: RFC 3339, UTC, whole seconds. */
export function timestamp(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, "Z");
}
