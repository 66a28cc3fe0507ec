import type { KubeObject, Stored } from "../api/kubernetes.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { type DependencyKind, isClass } from "../pods/dependencies.ts";
import { copyMetadata, copyMetadataPatch, setField, wantedMetadata } from "./copy.ts";

/** An object that pods use, as far as one is copied. */
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

/** Copied fields beside labels and annotations. */
export type Content = Pick<
  DependencyObject,
  | "type"
  | "immutable"
  | "data"
  | "binaryData"
  | "imagePullSecrets"
  | "automountServiceAccountToken"
  | "value"
  | "preemptionPolicy"
  | "description"
  | "handler"
  | "overhead"
>;

// The member's token controller would fill one with tokens of its own, or delete it for its account's uid.
const TOKEN_TYPE = "kubernetes.io/service-account-token";

/** Returns the content of an object's copy. Token Secrets that an account names stay on the host. */
export function contentOf(kind: DependencyKind, object: DependencyObject): Content {
  const { type, immutable, data, binaryData, imagePullSecrets, automountServiceAccountToken } = object;
  switch (kind) {
    case "ConfigMap":
      return filled({ immutable, data, binaryData });
    case "Secret":
      return filled({ type: type === TOKEN_TYPE ? "Opaque" : (type ?? "Opaque"), immutable, data });
    case "ServiceAccount":
      return {
        ...filled({ imagePullSecrets }),
        ...(automountServiceAccountToken === undefined ? {} : { automountServiceAccountToken }),
      };
    case "PriorityClass": {
      // As the default of all pods it would change those of others in the member.
      const { value, preemptionPolicy, description } = object;
      return filled({ value, preemptionPolicy, description: description === "" ? undefined : description });
    }
    case "RuntimeClass":
      // The class's scheduling selects nodes of the host.
      return filled({ handler: object.handler, overhead: object.overhead ?? undefined });
  }
}

/** The fields of a kind's content, whether an object has them or not. */
const CONTENT_FIELDS = {
  ConfigMap: { data: {}, binaryData: {}, immutable: false },
  Secret: { data: {}, immutable: false },
  ServiceAccount: { imagePullSecrets: [], automountServiceAccountToken: null },
  // The API server refuses any change of the other fields.
  PriorityClass: { description: "" },
  RuntimeClass: { overhead: null },
} as const;

const API_VERSIONS: Partial<Record<DependencyKind, string>> = {
  PriorityClass: "scheduling.k8s.io/v1",
  RuntimeClass: "node.k8s.io/v1",
};

/** The object to create in a member for one of the host. */
export function toCopy(kind: DependencyKind, source: Stored<DependencyObject>, host: HostIdentity): DependencyObject {
  const { name, namespace = "" } = source.metadata;
  const place = isClass(kind) ? { name } : { name, namespace };
  return {
    apiVersion: API_VERSIONS[kind] ?? "v1",
    kind,
    metadata: { ...place, ...copyMetadata(told(kind, source), host) },
    ...contentOf(kind, source),
  };
}

/** Reports whether the copy differs from its source in a field that the API server never changes. */
export function mustBeReplaced(kind: DependencyKind, copy: DependencyObject, source: DependencyObject): boolean {
  const [there, wanted] = [contentOf(kind, copy), contentOf(kind, source)];
  return (
    copy.type !== wanted.type ||
    there.value !== wanted.value ||
    there.preemptionPolicy !== wanted.preemptionPolicy ||
    there.handler !== wanted.handler
  );
}

/** True when the copy's labels and annotations are as they are to be. */
export function hasMetadataOf(
  kind: DependencyKind,
  copy: Stored<KubeObject>,
  source: Stored<KubeObject>,
  host: HostIdentity,
): boolean {
  return wantedMetadata(copy, told(kind, source), host) === undefined;
}

/** JSON patch for a copy that has its source's content: `copyMetadataPatch` for its kind. */
export function metadataPatch(
  kind: DependencyKind,
  copy: Stored<KubeObject>,
  source: Stored<KubeObject>,
  host: HostIdentity,
): object[] {
  return copyMetadataPatch(copy, told(kind, source), host);
}

/** JSON patch for a copy whose content differs: every field of that is set as a whole, beside what `metadataPatch` sets. */
export function copyPatch(
  kind: DependencyKind,
  copy: Stored<KubeObject>,
  source: Stored<DependencyObject>,
  host: HostIdentity,
): object[] {
  const content: Record<string, unknown> = { ...CONTENT_FIELDS[kind], ...contentOf(kind, source) };
  return [
    ...metadataPatch(kind, copy, source, host),
    ...Object.keys(CONTENT_FIELDS[kind]).map((field) => setField(`/${field}`, content[field])),
  ];
}

/**
 * The source with what members are told of its metadata. An account's annotations are its identity in a cloud. Kubelets read none
 * of a Secret or ConfigMap, and controllers of the member would do there what they say: replicators spread it over all namespaces.
 */
function told<T extends KubeObject>(kind: DependencyKind, source: Stored<T>): Stored<T> {
  if (kind === "ServiceAccount") return source;
  const { annotations: _, ...metadata } = source.metadata;
  return { ...source, metadata };
}

/** Without what says nothing: API servers keep `{}` and `false` as they were written, or not. */
function filled(content: { [Field in keyof Content]: Content[Field] | undefined }): Content {
  const says = (value: unknown): boolean =>
    typeof value === "object" && value !== null
      ? Object.keys(value).length > 0
      : value !== undefined && value !== false;
  return Object.fromEntries(Object.entries(content).filter(([, value]) => says(value)));
}
