import { jsonEqual, sortedKeys } from "../api/json.ts";
import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { apiVersionOf, type Resource } from "../kube/resources.ts";
import type { KeysOfMaps } from "../pods/compact-record.ts";
import {
  type GroupKind,
  type HostIdentity,
  type HostOwner,
  hasNameOf,
  isOfAnotherType,
  ownerOf,
} from "../pods/delegate.ts";
import { copyMetadata, copyMetadataPatch, type SourceOfCopy, setField, wantedMetadata } from "./copy-metadata.ts";

/** Fields by JSON pointer. */
export type Fields = Readonly<Record<string, unknown>>;

/** Selectors of a list and its watch, as the API server takes them. */
export interface Selectors {
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

/** The part of a source by which its copies are named; an owner annotation has it, too. */
export type SourceIdentity = Pick<HostOwner, "name" | "uid">;

/** The record of a kind that members get copies of. All functions are pure. docs/development.md says how to add a kind. */
export interface CopiedKind<T extends KubeObject> {
  readonly resource: Resource<T>;
  /** Returns a copy's fields beside `apiVersion`, `kind` and `metadata`. */
  readonly body: (source: Stored<T>, host: HostIdentity) => T;
  /** Returns the copied fields that the API server changes, each with a value that stands for none. */
  readonly content: (object: T) => Fields;
  /** Returns the copied fields that the API server never changes: a copy that differs in them is replaced. */
  readonly fixed?: (object: T) => unknown;
  /** Reports whether the API server refuses any change of the copy's content. */
  readonly isFrozen?: (copy: T) => boolean;
  /** Returns the source with the labels and annotations that a copy carries. Default: all. */
  readonly carried?: (source: Stored<T>) => Stored<T>;
  /** A copy of an earlier source of the same name is replaced: it stands for a run, which no other source continues. */
  readonly isOneRun?: boolean;
  /** The deletion policy for objects that the copy owns. Default: the API server's. */
  readonly propagationPolicy?: "Foreground" | "Background" | "Orphan";
  /** Labels and annotations matter to users: none starts with a copy that differs in them. */
  readonly metadataMatters?: boolean;
  /** Reports whether members get the object at all. Default: they do. */
  readonly isCopied?: (source: Stored<T>) => boolean;
  /** Returns a copy's name. Default: the source's. */
  readonly copyName?: (source: SourceIdentity, hostId: string) => string;
  /** Reports whether an object of this name that lost its owner annotation is a copy. Default: none is. */
  readonly knownByLabels?: (name: string, hostId: string) => boolean;
  /** Reports whether an object of the member's own serves users in place of a copy. */
  readonly isUsedInPlace?: (name: string) => boolean;
  /** Returns the write to send instead of one that a member refused for these fields. */
  readonly fallback?: (refusedFields: readonly string[]) => Fallback<T> | undefined;
  /** Selects the sources that are read on the host. Default: all. */
  readonly sources?: Selectors;
  /** Selects the copies among objects with their labels, which controllers of a member carry over. Default: all. */
  readonly copies?: Selectors;
  /** Removes the content of a copy before it is stored, of objects that may be as large as a megabyte. */
  readonly withoutContent?: (copy: Stored<T>) => Stored<T>;
  /** Copies share their fields with other managers of the member. Default: their content is the source's alone. */
  readonly applied?: AppliedKind<T>;
  /** Returns what users notice when a copy was deleted and made again. Default: nothing. */
  readonly remade?: (before: Stored<T>, after: Stored<T>) => string | undefined;
}

/** Copies that are changed by server-side apply, which leaves fields of other managers alone. */
export interface AppliedKind<T extends KubeObject> {
  readonly isInStep: (copy: Stored<T>, source: Stored<T>) => boolean;
  /** Returns further labels and annotations of a new copy. */
  readonly marks: (source: Stored<T>) => Marks;
  /** Returns the object to apply to a copy, without fields that other managers own. */
  readonly object: (
    copy: Stored<T>,
    change: { readonly source: Stored<T>; readonly host: HostIdentity; readonly left: LeftFields },
  ) => T;
  /** Reports whether the record says that the object was made as a copy of this type: it may have lost its owner annotation. */
  readonly wasMade: (object: Stored<T>) => boolean;
  /** Reports whether the copy was never applied: its creator owns its fields otherwise. */
  readonly isNew: (copy: Stored<T>) => boolean;
  /** Returns JSON pointers of fields that members own since the copy was last applied. They keep their values. */
  readonly newlyRetained: (copy: Stored<T>) => readonly string[];
  /** Returns the fields that the last apply left to other managers. */
  readonly left: (copy: Stored<T>) => LeftFields;
  /** Reports whether a field was applied to the copy before. False if that is not known. */
  readonly wasApplied: (copy: Stored<T>, source: Stored<T>, field: string) => boolean;
  /** Reports whether applied fields that other managers took are put back. */
  readonly restores: (copy: Stored<T>) => boolean;
  /** Reports whether a copy may be deleted, and made anew. */
  readonly mayBeReplaced: (copy: Stored<T>) => boolean;
  /** Returns the marks by which an object of the member's own in the copy's place becomes the copy. Undefined if it does not. */
  readonly adoptionMarks: (source: Stored<T>) => Marks | undefined;
}

/** Fields of a copy that other managers own, as server-side apply names them. */
export interface LeftFields {
  /** Fields that were never applied. */
  readonly givenUp: readonly string[];
  /** Fields that were applied before another manager took them. */
  readonly lost: readonly string[];
}

/** Legation's own labels and annotations. */
export interface Marks {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A smaller write in place of a refused one. */
export interface Fallback<T extends KubeObject> {
  readonly object: (object: T) => T;
  /** Appended to the patch. */
  readonly patch: readonly object[];
}

/**
 * How a copy differs from its source. Users may start with a copy whose `metadata` differs, and not with other `content`;
 * `immutable` fields differ until the copy is replaced.
 */
export type Drift = "none" | "metadata" | "content" | "immutable";

export function toCopy<T extends KubeObject>(kind: CopiedKind<T>, source: Stored<T>, host: HostIdentity): T {
  const { resource, body, copyName, applied } = kind;
  const name = copyName?.(source.metadata, host.id) ?? source.metadata.name;
  const place = resource.namespaced ? { name, namespace: source.metadata.namespace ?? "" } : { name };
  const metadata = copyMetadata(carried(kind, source, host));
  const marks = applied?.marks(source);
  return {
    ...body(source, host),
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      ...place,
      labels: { ...metadata.labels, ...marks?.labels },
      annotations: { ...metadata.annotations, ...marks?.annotations },
    },
  };
}

/** Returns the content of an object as canonical text, for a digest. */
export function contentText<T extends KubeObject>({ content }: CopiedKind<T>, object: T): string {
  return JSON.stringify(content(object), sortedKeys);
}

/** The source that a copy is compared with. */
interface Comparison<T extends KubeObject> {
  readonly source: Stored<T>;
  readonly host: HostIdentity;
  /** The content of both is equal. */
  readonly sameContent: boolean;
}

export function driftOf<T extends KubeObject>(
  kind: CopiedKind<T>,
  copy: Stored<T>,
  { source, host, sameContent }: Comparison<T>,
): Drift {
  const { fixed, body, isFrozen, isOneRun, metadataMatters, applied } = kind;
  const owner = ownerOf(copy);
  const isOfAnother = owner !== undefined && owner.uid !== source.metadata.uid;
  if (isOfAnother && isOneRun === true) return "immutable";
  // The member's API server refuses the change of one that may not be replaced, and says why.
  const immutable = applied?.mayBeReplaced(copy) === false ? "content" : "immutable";
  if (fixed !== undefined && !jsonEqual(fixed(copy), fixed(body(source, host)))) return immutable;
  if (!sameContent) return isFrozen?.(copy) === true ? immutable : "content";
  if (isOfAnother) return "content";
  // A copy in step has its source's labels and annotations, too.
  if (applied !== undefined) return "none";
  if (wantedMetadata(copy, carried(kind, source, host)) === undefined) return "none";
  return metadataMatters === true ? "content" : "metadata";
}

/**
 * Returns the JSON patch that makes a copy like its source. The API server refuses it for a copy that has changed since.
 * `owned`: the labels and annotations that Legation wrote, if the copy's record does not name them.
 */
export function copyPatch<T extends KubeObject>(
  kind: CopiedKind<T>,
  copy: Stored<T>,
  { source, host, sameContent }: Comparison<T>,
  owned?: KeysOfMaps,
): object[] {
  const metadata = copyMetadataPatch(copy, carried(kind, source, host), owned);
  if (sameContent) return metadata;
  const wanted = kind.content(kind.body(source, host));
  const there = kind.withoutContent === undefined ? kind.content(copy) : undefined;
  const fields = Object.keys(wanted).filter((field) => there === undefined || !jsonEqual(there[field], wanted[field]));
  return [...metadata, ...fields.map((field) => setField(field, wanted[field] ?? null))];
}

function carried<T extends KubeObject>(kind: CopiedKind<T>, source: Stored<T>, host: HostIdentity): SourceOfCopy {
  return { source: kind.carried === undefined ? source : kind.carried(source), host, type: kind.resource };
}

/**
 * Reports whether a client derived an object with the marks of a copy from one: they name another type, or an object whose
 * copies have another name or namespace.
 */
export function isDerived<T extends KubeObject>(
  object: KubeObject,
  { resource, copyName }: { readonly resource: GroupKind } & Pick<CopiedKind<T>, "copyName">,
  hostId: string,
): boolean {
  const owner = ownerOf(object);
  if (owner === undefined || isOfAnotherType(object, resource)) return true;
  return !hasNameOf({ ...owner, name: copyName?.(owner, hostId) ?? owner.name }, object);
}
