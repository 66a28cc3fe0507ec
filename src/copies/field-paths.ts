import { isJsonObject, pathOfPointer } from "../api/json.ts";

/** Returns the object without the field at a JSON pointer. `*` stands for any item of a list or key of a map. */
export function withoutPointer<T>(object: T, pointer: string): T {
  const remove = (value: unknown, [name = "", ...rest]: readonly string[]): unknown => {
    const isChosen = (key: string): boolean => name === "*" || name === key;
    return rest.length === 0
      ? withoutParts(value, isChosen)
      : mapParts(value, (key, part) => (isChosen(key) ? remove(part, rest) : part));
  };
  return remove(object, pathOfPointer(pointer)) as T;
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
