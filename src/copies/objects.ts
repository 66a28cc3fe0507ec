import { defined } from "../api/defined.ts";
import { type AnyObject, type DelegatedType, keptFields } from "../api/delegated-type.ts";
import { isJsonObject, jsonOrNothing, sortedKeys, withoutNulls } from "../api/json.ts";
import {
  APPLIED_ANNOTATION,
  CLUSTER_ANNOTATION,
  GROUP,
  HOST_LABEL,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
  WHOLE_FINALIZER,
  WHOLE_KEY,
  WHOLE_VALUE,
} from "../api/keys.ts";
import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { setLatest } from "../api/latest-entries.ts";
import { memoized } from "../api/memoized.ts";
import { resourceOfType } from "../api/resources.ts";
import { addressChange, addressKindOf } from "../api/service-fields.ts";
import { customResourceDefinitions, kindName, type Resource } from "../kube/resources.ts";
import { copyMetadata } from "./copy-metadata.ts";
import { withoutManagedField, withoutPointer } from "./field-paths.ts";
import { type AppliedKind, type CopiedKind, type Marks, toCopy } from "./kind.ts";
import { withoutMirror } from "./services.ts";
import { serviceFields, serviceMarks, serviceToApply } from "./whole-services.ts";

/** The record of the last apply to a copy: its annotation legation.dev/applied. */
export interface AppliedRecord {
  /** Digest of the source's fields. */
  readonly digest: string;
  /** Digest of their names, by which applied fields are known after the source has changed. */
  readonly names?: string;
  /** The copy's type. Controllers carry the annotation to what they derive from the copy. */
  readonly type?: string;
  /** Fields that another manager of the member owns, as server-side apply names them, and that were never applied. */
  readonly givenUp?: readonly string[];
  /** Applied fields that another manager took. */
  readonly lost?: readonly string[];
  /** JSON pointers of fields that the type left to members. */
  readonly retain?: readonly string[];
  /** The copy was created and never applied since, so that its fields are not yet owned by an apply. */
  readonly created?: boolean;
  /** The copy was an object of the member's own, and becomes one again. */
  readonly adopted?: boolean;
  /** The copy becomes an object of the member's own when its source is deleted. */
  readonly orphan?: boolean;
}

/** The wanted content of copies, computed once for each version of a source. */
interface Wanted {
  readonly applied: AppliedRecord;
  /** The source's own fields, labels and annotations. */
  readonly fields: AnyObject;
  /** The fields without their values, but for lists. */
  readonly names: unknown;
}

// Digests compare what the source itself says; marks of a host are the same for each source.
const NO_HOST = { id: "", name: "" };

/** Rules of a type beyond those of its DelegatedType. */
interface TypeRules {
  /** Returns fields that never change: a copy that differs in them is replaced. */
  readonly fixed?: (object: AnyObject) => unknown;
  /** A copy of an earlier source of the same name is replaced. */
  readonly isOneRun?: true;
  /** Returns a copy's fields from those of its source. */
  readonly fields?: (fields: AnyObject) => AnyObject;
  readonly toApply?: (wanted: AnyObject, copy: Stored<AnyObject>) => AnyObject;
  /** Returns the source with further labels of its copies. */
  readonly carried?: (source: Stored<AnyObject>) => Stored<AnyObject>;
  /** Returns annotations of a copy that stay, beside those that others wrote. */
  readonly marks?: (copy: Stored<AnyObject>) => Readonly<Record<string, string>>;
  /** Returns what users notice when a copy was deleted and made again. */
  readonly remade?: (before: AnyObject, after: AnyObject) => string | undefined;
}

const RULES: Readonly<Record<string, TypeRules>> = {
  // The API server changes no spec: another one is that of another object.
  "resourceclaims.resource.k8s.io": { isOneRun: true },
  "resourceclaimtemplates.resource.k8s.io": { isOneRun: true },
  secrets: { fixed: ({ type = "Opaque" }) => type },
  services: {
    fixed: addressKindOf,
    fields: serviceFields,
    toApply: serviceToApply,
    marks: serviceMarks,
    carried: withoutMirror,
    remade: addressChange,
  },
};

const WHOLE_LABELS = { [WHOLE_KEY]: WHOLE_VALUE };
// Legation's own labels and annotations, as server-side apply names fields.
const MARK = new RegExp(`^\\.metadata\\.(labels|annotations)\\.${GROUP.replaceAll(".", "\\.")}/`);
// Objects of one type mostly have the same fields. The oldest are forgotten first.
const MOST_NAMES = 1_000;

/**
 * Returns the record of a delegated type. Members' own fields are left out of copies. `hash` makes a short digest of a text;
 * `labels` mark copies beside the labels of all copies.
 */
export function delegatedKind(
  type: DelegatedType,
  hash: (text: string) => string,
  labels: Readonly<Record<string, string>> = WHOLE_LABELS,
): CopiedKind<AnyObject> & { readonly applied: AppliedKind<AnyObject> } {
  const resource = resourceOfType(type);
  const left = keptFields(type);
  const { retain = [], drift = "Restore" } = type.spec;
  const rules: TypeRules = RULES[type.metadata.name ?? ""] ?? {};
  const { fixed, carried, fields: fieldsFor = (fields: AnyObject) => fields } = rules;
  const body = (source: Stored<AnyObject>): AnyObject =>
    left.reduce((fields, pointer) => withoutPointer(fields, pointer), fieldsFor(fieldsOf(source)));
  /** Names of fields by their digest. */
  const named = new Map<string, unknown>();
  const wantedOf = memoized((source: Stored<AnyObject>): Wanted => {
    const fields = body(source);
    const metadata = copyMetadata({ source: carried?.(source) ?? source, host: NO_HOST, type: resource });
    const digest = hash(JSON.stringify({ ...fields, metadata }, sortedKeys));
    const own = { labels: withoutMarks(metadata.labels), annotations: withoutMarks(metadata.annotations) };
    const wanted = { ...fields, metadata: own };
    const names = namesOf(wanted);
    const applied = { digest, names: hash(JSON.stringify(names, sortedKeys)), type: kindName(resource) };
    setLatest(named, applied.names, names, MOST_NAMES);
    return { applied: { ...applied, ...(asksToOrphan(source) ? { orphan: true } : {}) }, fields: wanted, names };
  });
  const marksOf = (applied: AppliedRecord): Marks => ({
    labels,
    annotations: { [APPLIED_ANNOTATION]: JSON.stringify(recordOf(applied)) },
  });
  const kind: CopiedKind<AnyObject> & { readonly applied: AppliedKind<AnyObject> } = {
    resource,
    body,
    content: (object) => fieldsOf(object),
    ...defined({ fixed, carried, remade: rules.remade }),
    isFrozen: ({ immutable }) => immutable === true,
    isOneRun: rules.isOneRun ?? type.spec.exclusive === true,
    sources: { labelSelector: WHOLE_KEY },
    // All copies of other types are whole objects', also one that lost its label by a client of the member: DelegatedType
    // refuses what members get without it.
    ...(hasOtherCopies(resource) ? { copies: { labelSelector: WHOLE_KEY } } : {}),
    // Another host's copies, of which this cluster is a member, are not this host's to give. They have no finalizer.
    isCopied: (source) => hasWholeFinalizer(source) || source.metadata.labels?.[HOST_LABEL] === undefined,
    applied: {
      isInStep: (copy, source) => {
        const { digest, orphan = false, givenUp = [], lost = [] } = appliedTo(copy) ?? {};
        const { applied, fields } = wantedOf(source);
        if (Object.entries(labels).some(([key, value]) => copy.metadata.labels?.[key] !== value)) return false;
        if (digest !== applied.digest || orphan !== (applied.orphan ?? false)) return false;
        return covers({ ...fieldsOf(copy), metadata: copy.metadata }, without(fields, [...givenUp, ...lost]));
      },
      marks: (source) => marksOf({ ...wantedOf(source).applied, created: true }),
      object: (copy, { source, host, left: { givenUp, lost } }) => {
        const { uid, resourceVersion } = copy.metadata;
        const wanted = toCopy(kind, source, host);
        const { metadata = {}, ...fields } = without(rules.toApply?.(wanted, copy) ?? wanted, [...givenUp, ...lost]);
        const adopted = isAdopted(copy) ? { adopted: true } : {};
        const { annotations } = marksOf({ ...wantedOf(source).applied, ...adopted, givenUp, lost, retain });
        return {
          ...fields,
          metadata: {
            ...metadata,
            annotations: { ...metadata.annotations, ...annotations, ...rules.marks?.(copy) },
            uid,
            resourceVersion,
          },
        };
      },
      left: (copy) => {
        const { givenUp = [], lost = [] } = appliedTo(copy) ?? {};
        return { givenUp, lost };
      },
      wasApplied: (copy, source, field) => {
        const { digest, names, givenUp = [], lost = [] } = appliedTo(copy) ?? {};
        if (givenUp.includes(field)) return false;
        if (lost.includes(field) || MARK.test(field)) return true;
        const now = wantedOf(source);
        const isSame = digest === now.applied.digest || names === now.applied.names;
        return withoutManagedField(isSame ? now.names : named.get(names ?? ""), field) !== undefined;
      },
      // The managers of an adopted object were there before.
      restores: (copy) => drift === "Restore" && !isAdopted(copy),
      wasMade: (object) => {
        const { type: made, adopted = false, orphan = false } = appliedTo(object) ?? {};
        return made === kindName(resource) && !adopted && !orphan;
      },
      isNew: (copy) => appliedTo(copy)?.created === true,
      mayBeReplaced: (copy) => !isAdopted(copy),
      newlyRetained: (copy) => {
        const { retain: before = [] } = appliedTo(copy) ?? {};
        return retain.filter((pointer) => !before.includes(pointer));
      },
      adoptionMarks: (source) =>
        source.metadata.annotations?.[ON_CONFLICT_ANNOTATION] === "adopt"
          ? marksOf({ ...wantedOf(source).applied, created: true, adopted: true })
          : undefined,
    },
  };
  return kind;
}

/** Returns the record of a type whose objects follow the pods that name them, without a mark of their own. */
export function followedKind(type: DelegatedType, hash: (text: string) => string): CopiedKind<AnyObject> {
  const { sources: _, copies: __, isCopied: ___, ...kind } = delegatedKind(type, hash, {});
  // The right to adopt is asked of authors of whole objects alone.
  return { ...kind, applied: { ...kind.applied, adoptionMarks: () => undefined } };
}

/** Reports whether pods use objects of the resource, too: members may have a copy for them alone. */
function isUsedByPods({ group, plural }: Pick<Resource<KubeObject>, "group" | "plural">): boolean {
  return group === "" && (plural === "configmaps" || plural === "secrets" || plural === "services");
}

/** Reports whether members may have copies of the resource that are no whole objects': for pods, or of a definition that follows. */
export function hasOtherCopies(resource: Pick<Resource<KubeObject>, "group" | "plural">): boolean {
  return isUsedByPods(resource) || isDefinitions(resource);
}

/** Reports whether the resource is that of CustomResourceDefinitions, which take all objects of their type along. */
export function isDefinitions(resource: Pick<Resource<KubeObject>, "group" | "plural">): boolean {
  return kindName(resource) === kindName(customResourceDefinitions);
}

/** Reports whether a copy was an object of the member's own before. */
export function isAdopted(copy: KubeObject): boolean {
  return appliedTo(copy)?.adopted === true;
}

/** Reports whether a copy stays when its object is deleted, as far as the copy's record says. */
export function isOrphan(copy: KubeObject): boolean {
  return appliedTo(copy)?.orphan === true;
}

/** Reports whether the author of an object wants its copies to stay when it is deleted. */
export function asksToOrphan({ metadata }: KubeObject): boolean {
  return metadata?.annotations?.[ON_DELETE_ANNOTATION] === "orphan";
}

/** Returns what the annotation of a copy records. Undefined when it was removed or cannot be read. */
const appliedTo = memoized(readApplied);

function readApplied({ metadata }: KubeObject): AppliedRecord | undefined {
  const record = jsonOrNothing(metadata?.annotations?.[APPLIED_ANNOTATION]);
  if (!isJsonObject(record) || typeof record.digest !== "string") return undefined;
  const { digest, names, type, created, adopted, orphan } = record;
  return recordOf({
    digest,
    ...(typeof names === "string" ? { names } : {}),
    ...(typeof type === "string" ? { type } : {}),
    givenUp: stringsIn(record.givenUp),
    lost: stringsIn(record.lost),
    retain: stringsIn(record.retain),
    ...(created === true ? { created } : {}),
    ...(adopted === true ? { adopted } : {}),
    ...(orphan === true ? { orphan } : {}),
  });
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** Leaves out empty lists. */
function recordOf({ givenUp = [], lost = [], retain = [], ...applied }: AppliedRecord): AppliedRecord {
  const lists = Object.entries({ givenUp, lost, retain }).filter(([, list]) => list.length > 0);
  return { ...applied, ...Object.fromEntries(lists) };
}

/** Returns the names of fields without their values. Lists stay whole: their items are known by their values. */
function namesOf(value: unknown): unknown {
  if (!isJsonObject(value)) return Array.isArray(value) ? value : 0;
  return Object.fromEntries(Object.entries(value).map(([name, inside]) => [name, namesOf(inside)]));
}

/** Returns the keys that are not Legation's. */
function withoutMarks(map: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => !key.startsWith(`${GROUP}/`)));
}

/** Returns everything that an author writes beside metadata. */
function fieldsOf(object: AnyObject): AnyObject {
  const { apiVersion: _, kind: __, metadata: ___, status: ____, ...fields } = object;
  return withoutNulls(fields);
}

function without<T>(object: T, paths: readonly string[] = []): T {
  return paths.reduce((fields, path) => withoutManagedField(fields, path) ?? fields, object);
}

/** Reports whether a value has all that is wanted. The member's API server and its controllers may have added fields. */
function covers(there: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(there) || there.length !== wanted.length) return false;
    return wanted.every((item, index) => covers(there[index], item));
  }
  if (!isJsonObject(wanted)) return Object.is(there, wanted);
  // An API server may drop an empty map or list.
  if (there === undefined) return Object.values(wanted).every((value) => isEmpty(value));
  return (
    isJsonObject(there) && Object.entries(wanted).every(([key, value]) => isEmpty(value) || covers(there[key], value))
  );
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}

/** Returns the member that an object was given to, of a type whose objects go to one member. */
export function recordedMember({ metadata }: KubeObject): string | undefined {
  return metadata?.annotations?.[CLUSTER_ANNOTATION];
}

/** Reports whether admission has marked the object to be given to members, or to be taken back from them. */
export function hasWholeLabel({ metadata }: KubeObject): boolean {
  return metadata?.labels?.[WHOLE_KEY] !== undefined;
}

/** Reports whether the object waits for its copies when it is deleted. Without that nothing is created in a member. */
export function hasWholeFinalizer({ metadata: { finalizers = [] } }: Stored<KubeObject>): boolean {
  return finalizers.includes(WHOLE_FINALIZER);
}

export function isWantedInMembers({ metadata }: Stored<KubeObject>): boolean {
  return metadata.deletionTimestamp === undefined && metadata.labels?.[WHOLE_KEY] === WHOLE_VALUE;
}
