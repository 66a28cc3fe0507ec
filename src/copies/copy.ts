import {
  COPY_LABEL,
  COPY_LABEL_VALUE,
  FORWARDED_ANNOTATION,
  GROUP,
  HOST_LABEL,
  OWNER_ANNOTATION,
} from "../api/keys.ts";
import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { LAST_APPLIED_ANNOTATION } from "../api/last-applied.ts";
import { type HostIdentity, type Owner, ownerOf } from "../pods/delegate.ts";
import { readRecord, writeRecord } from "../pods/forwarded.ts";

const DROPPED_ANNOTATIONS: ReadonlySet<string> = new Set([
  // The whole object again, a Secret's content included.
  LAST_APPLIED_ANNOTATION,
  // The host has enforced it; the member would refuse the Secret with the pod's own token.
  "kubernetes.io/enforce-mountable-secrets",
]);

// Orders to replicators (kubernetes-replicator, Reflector), which would carry them out in the member, beyond the namespace.
const DROPPED_PREFIXES = ["replicator.v1.mittwald.de/", "reflector.v1.k8s.emberstack.com/"];

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
  const foreign = [`${GROUP}/`, ...DROPPED_PREFIXES];
  const own = (key: string): boolean =>
    !foreign.some((prefix) => key.startsWith(prefix)) && !DROPPED_ANNOTATIONS.has(key);
  const labels = only(metadata.labels, own);
  const annotations = only(metadata.annotations, own);
  const record = writeRecord({ labels: Object.keys(labels), annotations: Object.keys(annotations) });
  return {
    labels: { ...labels, [HOST_LABEL]: host.id, [COPY_LABEL]: COPY_LABEL_VALUE },
    annotations: { ...annotations, [OWNER_ANNOTATION]: JSON.stringify(owner), [FORWARDED_ANNOTATION]: record },
  };
}

/** A step of a JSON patch. */
export function setField(path: string, value: unknown): object {
  return { op: "add", path, value };
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
