import {
  COPY_LABEL,
  COPY_LABEL_VALUE,
  FORWARDED_ANNOTATION,
  GROUP,
  HOST_LABEL,
  OWNER_ANNOTATION,
} from "../api/keys.ts";
import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { type HostIdentity, type Owner, ownerOf } from "./delegate.ts";
import type { DependencyKind } from "./dependencies.ts";
import { readRecord, writeRecord } from "./forwarded.ts";

/** A ConfigMap, Secret or ServiceAccount, as far as one is copied. */
export interface DependencyObject extends KubeObject {
  type?: string;
  immutable?: boolean;
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
  imagePullSecrets?: { name?: string }[];
  automountServiceAccountToken?: boolean;
}

/** What is copied beside labels and annotations. */
export type Content = Pick<
  DependencyObject,
  "type" | "immutable" | "data" | "binaryData" | "imagePullSecrets" | "automountServiceAccountToken"
>;

// The member's token controller would fill one with tokens of its own, or delete it for its account's uid.
const TOKEN_TYPE = "kubernetes.io/service-account-token";
const DROPPED_ANNOTATIONS: ReadonlySet<string> = new Set([
  // The whole object again, a Secret's content included.
  "kubectl.kubernetes.io/last-applied-configuration",
  // The host has enforced it; the member would refuse the Secret with the pod's own token.
  "kubernetes.io/enforce-mountable-secrets",
  "kubernetes.io/service-account.name",
  "kubernetes.io/service-account.uid",
]);

/** What a copy of the object contains. The token Secrets that an account names stay where they are. */
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
  }
}

/** The fields of a kind's content, whether an object has them or not. */
const CONTENT_FIELDS = {
  ConfigMap: { data: {}, binaryData: {}, immutable: false },
  Secret: { data: {}, immutable: false },
  ServiceAccount: { imagePullSecrets: [], automountServiceAccountToken: null },
} as const;

/** The object to create in a member for one of the host. */
export function toCopy(kind: DependencyKind, source: Stored<DependencyObject>, host: HostIdentity): DependencyObject {
  const { name, namespace = "" } = source.metadata;
  return {
    apiVersion: "v1",
    kind,
    metadata: { name, namespace, ...copyMetadata(source, host) },
    ...contentOf(kind, source),
  };
}

/** True when the object is a copy that this host made. */
export function isCopy(object: KubeObject, hostId: string): boolean {
  return ownerOf(object) !== undefined && isLabelled(object, hostId);
}

/**
 * True when the object has a copy's labels. Without saying whose it is, it may be a copy from which somebody has taken that off,
 * or something that was made of one: controllers carry labels over, as that of EndpointSlices those of Services.
 */
export function isLabelled({ metadata }: KubeObject, hostId: string): boolean {
  return metadata?.labels?.[HOST_LABEL] === hostId && metadata.labels[COPY_LABEL] === COPY_LABEL_VALUE;
}

/** Labels and annotations of the copy as they are to be; undefined when they are so. What others added stays. */
export function wantedMetadata(
  copy: Stored<KubeObject>,
  source: Stored<KubeObject>,
  host: HostIdentity,
): { labels: Record<string, string>; annotations: Record<string, string> } | undefined {
  const wanted = copyMetadata(source, host);
  const { labels = {}, annotations = {} } = copy.metadata;
  const record = readRecord(annotations[FORWARDED_ANNOTATION]);
  const result = {
    labels: { ...without(labels, record.labels), ...wanted.labels },
    annotations: { ...without(annotations, record.annotations), ...wanted.annotations },
  };
  return sameMap(result.labels, labels) && sameMap(result.annotations, annotations) ? undefined : result;
}

/**
 * JSON patch that makes a copy say what its source says, whose content it has. It names uid and version of the copy that it
 * was reckoned from: the API server refuses it for any other. One that is immutable may be patched by this, and by nothing
 * that touches its content: to the API server, an empty map is another content than none.
 */
export function copyMetadataPatch(copy: Stored<KubeObject>, source: Stored<KubeObject>, host: HostIdentity): object[] {
  const { uid, resourceVersion, labels = {}, annotations = {} } = copy.metadata;
  const metadata = wantedMetadata(copy, source, host) ?? { labels, annotations };
  return [
    setField("/metadata/uid", uid),
    setField("/metadata/resourceVersion", resourceVersion),
    setField("/metadata/labels", metadata.labels),
    setField("/metadata/annotations", metadata.annotations),
  ];
}

/** The same, for a copy whose content differs: every field of that is set as a whole. */
export function copyPatch(
  kind: DependencyKind,
  copy: Stored<KubeObject>,
  source: Stored<DependencyObject>,
  host: HostIdentity,
): object[] {
  const content: Record<string, unknown> = { ...CONTENT_FIELDS[kind], ...contentOf(kind, source) };
  return [
    ...copyMetadataPatch(copy, source, host),
    ...Object.keys(CONTENT_FIELDS[kind]).map((field) => setField(`/${field}`, content[field])),
  ];
}

/** True when the copy stands for exactly this object of the host. */
export function standsFor(copy: KubeObject, source: Stored<KubeObject>): boolean {
  return ownerOf(copy)?.uid === source.metadata.uid;
}

/** Labels and annotations of a new copy: those of its source, and whose it is. */
export function copyMetadata(
  { metadata }: Stored<KubeObject>,
  host: HostIdentity,
): { labels: Record<string, string>; annotations: Record<string, string> } {
  const { name, namespace = "", uid } = metadata;
  const owner: Owner = { cluster: host.name, namespace, name, uid };
  const own = (key: string): boolean => !key.startsWith(`${GROUP}/`) && !DROPPED_ANNOTATIONS.has(key);
  const labels = only(metadata.labels, own);
  const annotations = only(metadata.annotations, own);
  const record = writeRecord({ labels: Object.keys(labels), annotations: Object.keys(annotations) });
  return {
    labels: { ...labels, [HOST_LABEL]: host.id, [COPY_LABEL]: COPY_LABEL_VALUE },
    annotations: { ...annotations, [OWNER_ANNOTATION]: JSON.stringify(owner), [FORWARDED_ANNOTATION]: record },
  };
}

/** One step of a JSON patch. */
export function setField(path: string, value: unknown): object {
  return { op: "add", path, value };
}

/** Without what says nothing: API servers keep `{}` and `false` as they were written, or not. */
function filled(content: { [Field in keyof Content]: Content[Field] | undefined }): Content {
  const says = (value: unknown): boolean =>
    typeof value === "object" && value !== null
      ? Object.keys(value).length > 0
      : value !== undefined && value !== false;
  return Object.fromEntries(Object.entries(content).filter(([, value]) => says(value)));
}

function only(map: Record<string, string> = {}, keep: (key: string) => boolean): Record<string, string> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => keep(key)));
}

function without(map: Record<string, string>, keys: readonly string[]): Record<string, string> {
  return only(map, (key) => !keys.includes(key));
}

function sameMap(a: Record<string, string>, b: Record<string, string>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
