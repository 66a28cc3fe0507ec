import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { configMaps, priorityClasses, runtimeClasses, secrets, serviceAccounts } from "../kube/resources.ts";
import type { CopiedKind } from "./kind.ts";

/** An object that pods name, as far as one is copied. */
export interface DependencyObject extends KubeObject {
  type?: string;
  immutable?: boolean;
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
  imagePullSecrets?: { name?: string }[];
  automountServiceAccountToken?: boolean;
  value?: number;
  preemptionPolicy?: string;
  description?: string;
  handler?: string;
  overhead?: object | null;
}

type Kind = CopiedKind<DependencyObject>;
type Body = { [Field in keyof DependencyObject]: DependencyObject[Field] | undefined };

// The member's token controller would fill one with tokens of its own, or delete it for its account's uid.
const TOKEN_TYPE = "kubernetes.io/service-account-token";
// Authorities that a controller of each cluster writes into all namespaces: a pod trusts those of where it runs.
const EACH_CLUSTERS_OWN: ReadonlySet<string> = new Set(["istio-ca-root-cert", "openshift-service-ca.crt"]);

const configMap: Kind = {
  resource: configMaps,
  body: ({ immutable, data, binaryData }) => filled({ immutable, data, binaryData }),
  content: ({ data = {}, binaryData = {}, immutable = false }) => ({
    "/data": data,
    "/binaryData": binaryData,
    "/immutable": immutable,
  }),
  isFrozen: ({ immutable }) => immutable === true,
  carried: withoutAnnotations,
  isUsedInPlace: (name) => EACH_CLUSTERS_OWN.has(name),
  withoutContent: ({ data: _, binaryData: __, ...rest }) => rest,
};

/** Token Secrets that an account names stay on the host. */
const secret: Kind = {
  resource: secrets,
  body: ({ type = "Opaque", immutable, data }) =>
    filled({ type: type === TOKEN_TYPE ? "Opaque" : type, immutable, data }),
  content: ({ data = {}, immutable = false }) => ({ "/data": data, "/immutable": immutable }),
  fixed: ({ type = "Opaque" }) => type,
  isFrozen: ({ immutable }) => immutable === true,
  carried: withoutAnnotations,
  // Helm keeps releases in Secrets of up to a megabyte, many for each installation, which no pod mounts.
  sources: { fieldSelector: "type!=helm.sh/release.v1" },
  withoutContent: ({ data: _, ...rest }) => rest,
};

const serviceAccount: Kind = {
  resource: serviceAccounts,
  body: ({ imagePullSecrets, automountServiceAccountToken }) => ({
    ...filled({ imagePullSecrets }),
    ...(automountServiceAccountToken === undefined ? {} : { automountServiceAccountToken }),
  }),
  content: ({ imagePullSecrets = [], automountServiceAccountToken = null }) => ({
    "/imagePullSecrets": imagePullSecrets,
    "/automountServiceAccountToken": automountServiceAccountToken,
  }),
  // An account's annotations are its identity in a cloud, whose webhook reads them when a pod is created.
  metadataMatters: true,
  // An account is who the pod is in that member: the member's administrator may have said so.
  isUsedInPlace: () => true,
};

const priorityClass: Kind = {
  resource: priorityClasses,
  // Without `globalDefault`: as the default of all pods it would change those of others in the member.
  body: ({ value, preemptionPolicy, description }) =>
    filled({ value, preemptionPolicy, description: description === "" ? undefined : description }),
  content: ({ description = "" }) => ({ "/description": description }),
  fixed: ({ value, preemptionPolicy }) => ({ value, preemptionPolicy }),
  carried: withoutAnnotations,
  isUsedInPlace: () => true,
};

const runtimeClass: Kind = {
  resource: runtimeClasses,
  // Without `scheduling`, which selects nodes of the host.
  body: ({ handler, overhead }) => filled({ handler, overhead: overhead ?? undefined }),
  content: ({ overhead }) => ({ "/overhead": overhead ?? null }),
  fixed: ({ handler }) => handler,
  carried: withoutAnnotations,
  isUsedInPlace: () => true,
};

export type DependencyKind = "ConfigMap" | "Secret" | "ServiceAccount" | "PriorityClass" | "RuntimeClass";

/** The kinds that pods name, in the order in which copies are made. `named-by-pods.ts` says where pods name them. */
export const DEPENDENCIES: Readonly<Record<DependencyKind, Kind>> = {
  ConfigMap: configMap,
  Secret: secret,
  ServiceAccount: serviceAccount,
  PriorityClass: priorityClass,
  RuntimeClass: runtimeClass,
};

/**
 * The kubelet reads no annotations of a Secret or ConfigMap, and controllers of the member would do there what they say:
 * replicators spread it over all namespaces.
 */
function withoutAnnotations<T extends KubeObject>(source: Stored<T>): Stored<T> {
  const { annotations: _, ...metadata } = source.metadata;
  return { ...source, metadata };
}

/** Leaves out fields that say nothing: API servers store `{}` and `false` as they were written, or not at all. */
function filled(body: Partial<Body>): DependencyObject {
  const says = (value: unknown): boolean =>
    typeof value === "object" && value !== null
      ? Object.keys(value).length > 0
      : value !== undefined && value !== false;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => says(value)));
}
