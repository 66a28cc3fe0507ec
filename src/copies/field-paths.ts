import { isJsonObject, jsonEqual, pathOfPointer } from "../api/json.ts";

/** Returns the object without the field at a JSON pointer. `*` stands for any item of a list or key of a map. */
export function withoutPointer<T>(object: T, pointer: string): T {
  const path = pathOfPointer(pointer);
  const name = path.at(-1) ?? "";
  return changed(object, path.slice(0, -1), (part) => withoutParts(part, (key) => isMeant(name, key))) as T;
}

/** Returns the parts of the object at a JSON pointer. `*` stands for any item of a list or key of a map. */
export function partsAt(object: unknown, pointer: string): unknown[] {
  const parts: unknown[] = [];
  changedAt(object, pointer, (part) => {
    parts.push(part);
    return part;
  });
  return parts;
}

/** Returns the object with each part at a JSON pointer changed. `*` stands for any item of a list or key of a map. */
export function changedAt<T>(object: T, pointer: string, change: (part: unknown) => unknown): T {
  return changed(object, pathOfPointer(pointer), change) as T;
}

function changed(value: unknown, [name, ...rest]: readonly string[], change: (part: unknown) => unknown): unknown {
  if (name === undefined) return change(value);
  return mapParts(value, (key, part) => (isMeant(name, key) ? changed(part, rest, change) : part));
}

/** Reports whether a segment of a pointer means the item or key. */
function isMeant(name: string, key: string): boolean {
  return name === "*" || name === key;
}

/**
 * Returns the object without a field as server-side apply names it: `.spec.ports[port=80,protocol="TCP"].nodePort`
 * (structured-merge-diff, fieldpath/element.go). Undefined if there is no such field.
 */
export function withoutManagedField<T>(object: T, path: string): T | undefined {
  const less = withoutManaged(object, path);
  return less === object ? undefined : (less as T);
}

function withoutManaged(value: unknown, path: string): unknown {
  const part = partAt(value, path);
  if (part === undefined) return value;
  if (part.rest === "") return withoutParts(value, (key) => key === part.key);
  return mapParts(value, (key, field) => (key === part.key ? withoutManaged(field, part.rest) : field));
}

/** Returns the union of two managers' sets of fields, which are trees of objects. */
export function unionOfFields(one: object, other: object): object {
  const both: Record<string, unknown> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const own = both[key];
    both[key] = isJsonObject(own) && isJsonObject(value) ? unionOfFields(own, value) : value;
  }
  return both;
}

/**
 * Returns a manager's set of fields (`fieldsV1`: `{"f:spec": {"f:replicas": {}}}`) without the field at a JSON pointer and the
 * fields inside it. `*` stands for any item or key. `object` has the lists whose items the pointer counts.
 */
export function withoutOwnedField(fieldsV1: object, pointer: string, object: unknown): object {
  return withoutOwned(fieldsV1, pathOfPointer(pointer), object) ?? {};
}

/** Returns undefined if no field is left. */
function withoutOwned(fields: object, [name = "", ...rest]: readonly string[], value: unknown): object | undefined {
  const kept = Object.entries(fields).flatMap(([key, inside]: [string, unknown]) => {
    const part = partOwned(key, name, value);
    if (part === undefined || !isJsonObject(inside)) return [[key, inside] as const];
    const less = rest.length === 0 ? undefined : withoutOwned(inside, rest, part.value);
    // An empty set stands for the whole field.
    const isWhole = Object.keys(inside).length === 0 && rest.length > 0;
    return less === undefined && !isWhole ? [] : [[key, isWhole ? inside : less] as const];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Returns the part of a value that a key of a set of fields stands for, if a pointer's segment means it. */
function partOwned(key: string, name: string, value: unknown): { readonly value: unknown } | undefined {
  const [kind = "", text = ""] = [key.slice(0, 2), key.slice(2)];
  if (kind === "f:") {
    if (name !== "*" && name !== text) return undefined;
    return { value: isJsonObject(value) ? value[text] : undefined };
  }
  if (!["k:", "v:", "i:"].includes(kind) || !Array.isArray(value)) return undefined;
  const wanted: unknown = kind === "i:" ? undefined : parsed(text);
  const isItem = (item: unknown): boolean =>
    kind === "v:"
      ? jsonEqual(item, wanted)
      : isJsonObject(wanted) && Object.entries(wanted).every(([field, is]) => isJsonObject(item) && item[field] === is);
  const index = kind === "i:" ? Number(text) : value.findIndex(isItem);
  return name === "*" || name === String(index) ? { value: value[index] } : undefined;
}

/** Returns the key or position that a path begins with. The longest key wins, since keys of maps may have dots. */
function partAt(value: unknown, path: string): { readonly key: string; readonly rest: string } | undefined {
  if (isJsonObject(value)) {
    const keys = Object.keys(value).filter(
      (key) => path.startsWith(`.${key}`) && /^($|[.[])/.test(path.slice(key.length + 1)),
    );
    const key = keys.toSorted((a, b) => b.length - a.length)[0];
    return key === undefined ? undefined : { key, rest: path.slice(key.length + 1) };
  }
  const item = ITEM.exec(path);
  if (!Array.isArray(value) || item === null) return undefined;
  const [all, text = ""] = item;
  const wanted = /^\d+$/.test(text) ? undefined : keysOf(text);
  const index =
    wanted === undefined
      ? Number(text)
      : value.findIndex((one) =>
          wanted.every(([key, is]) => is === (key === "" ? one : isJsonObject(one) ? one[key] : undefined)),
        );
  return value[index] === undefined ? undefined : { key: String(index), rest: path.slice(all.length) };
}

const ITEM = /^\[((?:[^"\]]|"(?:[^"\\]|\\.)*")+)\]/;
const KEY = /([^=,]*)=("(?:[^"\\]|\\.)*"|[^,]+)/g;

/** Returns the keys of a list's item with their values; an empty key stands for the item itself. Unreadable ones match no item. */
function keysOf(text: string): [string, unknown][] {
  return [...text.matchAll(KEY)].map(([, key = "", value = ""]) => [key, parsed(value)]);
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return Symbol("unreadable");
  }
}

function withoutParts(value: unknown, isChosen: (key: string) => boolean): unknown {
  if (Array.isArray(value)) {
    const kept = value.filter((_, index) => !isChosen(String(index)));
    return kept.length === value.length ? value : kept;
  }
  if (!isJsonObject(value) || !Object.keys(value).some(isChosen)) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !isChosen(key)));
}

/** Returns the same value if no part changes. */
function mapParts(value: unknown, change: (key: string, part: unknown) => unknown): unknown {
  if (!Array.isArray(value) && !isJsonObject(value)) return value;
  const parts = Object.entries(value).map(([key, part]): [string, unknown, boolean] => {
    const changed = change(key, part);
    return [key, changed, changed !== part];
  });
  if (!parts.some(([, , isChanged]) => isChanged)) return value;
  if (Array.isArray(value)) return parts.map(([, part]) => part);
  return Object.fromEntries(parts.map(([key, part]) => [key, part]));
}
