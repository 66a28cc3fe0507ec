import { type AnyObject, type DelegatedType, keptFields } from "../api/delegated-type.ts";
import { isJsonObject, withoutNulls } from "../api/json.ts";
import {
  APPLIED_ANNOTATION,
  CLUSTER_ANNOTATION,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
  WHOLE_KEY,
  WHOLE_VALUE,
} from "../api/keys.ts";
import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { resourceOfType } from "../api/resources.ts";
import { withoutManagedField, withoutPointer } from "./field-paths.ts";
import { type CopiedKind, type Marks, toCopy } from "./kind.ts";

/** What was last applied to a copy: its annotation legation.dev/applied. */
export interface Applied {
  /** Digest of the source's fields. */
  readonly digest: string;
  /** Fields that another manager of the member owns, as server-side apply names them. */
  readonly givenUp?: readonly string[];
  /** The copy was created and never applied since, so that its fields are not yet owned by an apply. */
  readonly created?: boolean;
}

const FIXED: Readonly<Record<string, (object: AnyObject) => unknown>> = {
  secrets: ({ type = "Opaque" }) => type,
};

/** Returns the record of a delegated type. Members' own fields are left out of copies. `hash` makes a short digest of a text. */
export function delegatedKind(type: DelegatedType, hash: (text: string) => string): CopiedKind<AnyObject> {
  const resource = resourceOfType(type);
  const name = type.metadata.name ?? "";
  const retained = keptFields(type);
  const fixed = FIXED[name];
  const body = (source: Stored<AnyObject>): AnyObject =>
    retained.reduce((fields, pointer) => withoutPointer(fields, pointer), fieldsOf(source));
  const digestOf = (source: Stored<AnyObject>): string => hash(JSON.stringify(body(source), sortedKeys));
  const kind: CopiedKind<AnyObject> = {
    resource,
    body,
    content: (object) => fieldsOf(object),
    ...(fixed === undefined ? {} : { fixed }),
    isFrozen: ({ immutable }) => immutable === true,
    metadataMatters: true,
    sources: { labelSelector: WHOLE_KEY },
    applied: {
      isInStep: (copy, source) => {
        const applied = appliedTo(copy);
        const wanted = body(source);
        return applied?.digest === digestOf(source) && covers(fieldsOf(copy), without(wanted, applied.givenUp));
      },
      marks: (source) => marksOf({ digest: digestOf(source), created: true }),
      object: (copy, { source, host, givenUp }) => {
        const { uid, resourceVersion } = copy.metadata;
        const { metadata = {}, ...fields } = without(toCopy(kind, source, host), givenUp);
        const { annotations } = marksOf({ digest: digestOf(source), givenUp });
        return {
          ...fields,
          metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations }, uid, resourceVersion },
        };
      },
      givenUp: (copy) => appliedTo(copy)?.givenUp ?? [],
      isNew: (copy) => appliedTo(copy)?.created === true,
      isAdopting: ({ metadata }) => metadata.annotations?.[ON_CONFLICT_ANNOTATION] === "adopt",
    },
  };
  return kind;
}

/** Returns what the annotation of a copy records. Undefined when it was removed or cannot be read. */
function appliedTo({ metadata }: KubeObject): Applied | undefined {
  const text = metadata?.annotations?.[APPLIED_ANNOTATION];
  if (text === undefined) return undefined;
  try {
    const record: unknown = JSON.parse(text);
    if (!isJsonObject(record) || typeof record.digest !== "string") return undefined;
    const { digest, givenUp, created } = record;
    const fields = Array.isArray(givenUp) ? givenUp.filter((field) => typeof field === "string") : [];
    return { digest, ...(fields.length === 0 ? {} : { givenUp: fields }), ...(created === true ? { created } : {}) };
  } catch {
    return undefined;
  }
}

function marksOf({ givenUp = [], ...applied }: Applied): Marks {
  const record = { ...applied, ...(givenUp.length === 0 ? {} : { givenUp }) };
  return { labels: { [WHOLE_KEY]: WHOLE_VALUE }, annotations: { [APPLIED_ANNOTATION]: JSON.stringify(record) } };
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

function sortedKeys(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the member that an object was given to, of a type whose objects go to one member. */
export function recordedMember({ metadata }: KubeObject): string | undefined {
  return metadata?.annotations?.[CLUSTER_ANNOTATION];
}

/** Reports whether admission has marked the object to be given to members, or to be taken back from them. */
export function hasWholeLabel({ metadata }: KubeObject): boolean {
  return metadata?.labels?.[WHOLE_KEY] !== undefined;
}

/** Reports whether members are to have the object. */
export function isWanted({ metadata }: Stored<KubeObject>): boolean {
  return metadata.deletionTimestamp === undefined && metadata.labels?.[WHOLE_KEY] === WHOLE_VALUE;
}

/** Reports whether the copies of a deleted object stay, as objects of the members' own. */
export function isOrphaning({ metadata }: KubeObject): boolean {
  return metadata?.annotations?.[ON_DELETE_ANNOTATION] === "orphan";
}
