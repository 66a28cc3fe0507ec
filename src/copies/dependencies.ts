import type { KubeObject, Stored } from "../api/kubernetes.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { type DependencyKind, isClass } from "../pods/dependencies.ts";
import { copyMetadata, copyMetadataPatch, setField, wantedMetadata } from "./copy.ts";

/** An object that pods use, as far as it is copied. */
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

// The member's token controller would fill such a Secret with its own tokens, or delete it.
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
      // A global default would change other tenants' pods.
      const { value, preemptionPolicy, description } = object;
      return filled({ value, preemptionPolicy, description: description === "" ? undefined : description });
    }
    case "RuntimeClass":
      // The class's scheduling selects nodes of the host.
      return filled({ handler: object.handler, overhead: object.overhead ?? undefined });
  }
}

/** Content fields by kind. */
const CONTENT_FIELDS = {
  ConfigMap: { data: {}, binaryData: {}, immutable: false },
  Secret: { data: {}, immutable: false },
  ServiceAccount: { imagePullSecrets: [], automountServiceAccountToken: null },
  // The other fields are immutable.
  PriorityClass: { description: "" },
  RuntimeClass: { overhead: null },
} as const;

const API_VERSIONS: Partial<Record<DependencyKind, string>> = {
  PriorityClass: "scheduling.k8s.io/v1",
  RuntimeClass: "node.k8s.io/v1",
};

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

/** Reports whether the copy's labels and annotations are up to date. */
export function hasMetadataOf(
  kind: DependencyKind,
  copy: Stored<KubeObject>,
  source: Stored<KubeObject>,
  host: HostIdentity,
): boolean {
  return wantedMetadata(copy, told(kind, source), host) === undefined;
}

/** Returns the JSON patch of a copy's metadata. */
export function metadataPatch(
  kind: DependencyKind,
  copy: Stored<KubeObject>,
  source: Stored<KubeObject>,
  host: HostIdentity,
): object[] {
  return copyMetadataPatch(copy, told(kind, source), host);
}

/** Returns the JSON patch of a copy's content, each field as a whole, and of its metadata. */
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
 * Returns the source with the metadata that is copied. Annotations go with accounts alone: on a Secret or ConfigMap
 * they are orders to controllers, such as replicators.
 */
function told<T extends KubeObject>(kind: DependencyKind, source: Stored<T>): Stored<T> {
  if (kind === "ServiceAccount") return source;
  const { annotations: _, ...metadata } = source.metadata;
  return { ...source, metadata };
}

/** Removes `{}` and `false`, which API servers may keep or drop. */
function filled(content: { [Field in keyof Content]: Content[Field] | undefined }): Content {
  const says = (value: unknown): boolean =>
    typeof value === "object" && value !== null
      ? Object.keys(value).length > 0
      : value !== undefined && value !== false;
  return Object.fromEntries(Object.entries(content).filter(([, value]) => says(value)));
}
