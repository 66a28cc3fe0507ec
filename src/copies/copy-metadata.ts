import { fittingAnnotations } from "../api/annotation-room.ts";
import { isToolsAnnotation, isToolsLabel } from "../api/delivery-tools.ts";
import { jsonEqual } from "../api/json.ts";
import {
  COPY_LABEL,
  COPY_LABEL_VALUE,
  FORWARDED_ANNOTATION,
  GROUP,
  HOST_LABEL,
  OWNER_ANNOTATION,
} from "../api/keys.ts";
import type { KubeObject, Stored } from "../api/kubernetes.ts";
import type { KeysOfMaps } from "../pods/compact-record.ts";
import { type GroupKind, type HostIdentity, isOfAnotherType, ownerIn, ownerOf } from "../pods/delegate.ts";
import { readRecord, writeRecord } from "../pods/forward-record.ts";

// Enforced on the host; the member would refuse the Secret with the pod's token.
const ENFORCED_ANNOTATION = "kubernetes.io/enforce-mountable-secrets";

export function isCopy(object: KubeObject, hostId: string, type: GroupKind): boolean {
  return ownerOf(object) !== undefined && isLabelled(object, hostId) && !isOfAnotherType(object, type);
}

/**
 * Reports whether the object has a copy's labels. Without an owner annotation it may be a stripped copy, or derived
 * from one: controllers carry labels over.
 */
export function isLabelled({ metadata }: KubeObject, hostId: string): boolean {
  return metadata?.labels?.[HOST_LABEL] === hostId && metadata.labels[COPY_LABEL] === COPY_LABEL_VALUE;
}

/** Reports whether the object is a copy that lost its owner annotation. A copy has no owner in its member: what was derived from one may have. */
export function hasLostOwner(object: KubeObject, hostId: string): boolean {
  const { ownerReferences = [] } = object.metadata ?? {};
  return ownerOf(object) === undefined && isLabelled(object, hostId) && ownerReferences.length === 0;
}

/** The host's object behind a copy. */
export interface SourceOfCopy {
  readonly source: Stored<KubeObject>;
  readonly host: HostIdentity;
  readonly type: GroupKind;
}

interface Maps {
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

/** Returns the wanted labels and annotations of a copy. Undefined if it has them. Others' additions stay. */
export function wantedMetadata(copy: Stored<KubeObject>, of: SourceOfCopy): Maps | undefined {
  const wanted = nextMetadata(copy, of);
  const { labels = {}, annotations = {} } = copy.metadata;
  const { kind: _, ...owner } = ownerIn(of.host, of.type, of.source.metadata);
  // An upgrade must not cost a write for each copy: those of 0.1 get the kind with their next change.
  const isOfOldForm = jsonEqual(ownerOf(copy), owner);
  const compared = isOfOldForm
    ? { ...wanted.annotations, [OWNER_ANNOTATION]: annotations[OWNER_ANNOTATION] }
    : wanted.annotations;
  return sameMap(wanted.labels, labels) && sameMap(compared, annotations) ? undefined : wanted;
}

/** Reports whether the API server's record of field managers alone tells which keys of a copy are Legation's. */
export function lacksKeys({ metadata }: Stored<KubeObject>): boolean {
  return readRecord(metadata.annotations?.[FORWARDED_ANNOTATION]).keys !== undefined;
}

/** `owned`: the keys that Legation wrote, if the copy's record does not name them. */
function nextMetadata(copy: Stored<KubeObject>, of: SourceOfCopy, owned?: KeysOfMaps): Maps {
  const wanted = copyMetadata(of);
  const { labels = {}, annotations = {} } = copy.metadata;
  const record = owned ?? readRecord(annotations[FORWARDED_ANNOTATION]);
  return {
    labels: { ...without(labels, record.labels), ...wanted.labels },
    annotations: { ...without(annotations, record.annotations), ...wanted.annotations },
  };
}

/**
 * Returns a JSON patch of a copy's labels and annotations, with uid and resourceVersion as preconditions. It touches
 * no content, so it works on immutable copies.
 */
export function copyMetadataPatch(copy: Stored<KubeObject>, of: SourceOfCopy, owned?: KeysOfMaps): object[] {
  const { uid, resourceVersion } = copy.metadata;
  const metadata = nextMetadata(copy, of, owned);
  return [
    setField("/metadata/uid", uid),
    setField("/metadata/resourceVersion", resourceVersion),
    setField("/metadata/labels", metadata.labels),
    setField("/metadata/annotations", metadata.annotations),
  ];
}

export function standsFor(copy: KubeObject, source: Stored<KubeObject>): boolean {
  return ownerOf(copy)?.uid === source.metadata.uid;
}

export function copyMetadata({ source: { metadata }, host, type }: SourceOfCopy): Maps {
  const owner = ownerIn(host, type, metadata);
  const labels = copiedLabels(metadata.labels);
  const annotations = fittingAnnotations(copiedAnnotations(metadata.annotations));
  const record = writeRecord({ labels: Object.keys(labels), annotations: Object.keys(annotations) });
  return {
    labels: { ...labels, [HOST_LABEL]: host.id, [COPY_LABEL]: COPY_LABEL_VALUE },
    annotations: { ...annotations, [OWNER_ANNOTATION]: JSON.stringify(owner), [FORWARDED_ANNOTATION]: record },
  };
}

/** Returns the labels of an object of the host that its copies have. */
export function copiedLabels(labels: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return only(labels, (key, value) => !key.startsWith(`${GROUP}/`) && !isToolsLabel(key, value, "copy"));
}

/** Returns the annotations of an object of the host that its copies have, whatever room there is. */
export function copiedAnnotations(annotations: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return only(
    annotations,
    (key) => !key.startsWith(`${GROUP}/`) && key !== ENFORCED_ANNOTATION && !isToolsAnnotation(key, "copy"),
  );
}

/** Returns a JSON patch operation that sets a field. */
export function setField(path: string, value: unknown): object {
  return { op: "add", path, value };
}

function only(
  map: Readonly<Record<string, string>> = {},
  keep: (key: string, value: string) => boolean,
): Record<string, string> {
  return Object.fromEntries(Object.entries(map).filter(([key, value]) => keep(key, value)));
}

/** Keeps Legation's own keys, whatever is recorded. */
function without(map: Record<string, string>, keys: readonly string[]): Record<string, string> {
  const all = new Set(keys);
  return only(map, (key) => key.startsWith(`${GROUP}/`) || !all.has(key));
}

function sameMap(a: Readonly<Record<string, string | undefined>>, b: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
