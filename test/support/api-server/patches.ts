import { isJsonObject, type JsonObject } from "../../../src/api/json.ts";
import { applyPatch } from "../../../src/api/json-patch.ts";
import type { PatchOperation } from "../../../src/api/overrides.ts";
import type { Patch } from "../../../src/kube/client.ts";
import { asStored, type StoredObject } from "./object-store.ts";
import { invalid, type ServedResource } from "./refusal.ts";

/** Returns the object after a patch that is no apply. Throws a refusal when a JSON patch does not fit. */
export function patched(
  resource: ServedResource,
  object: StoredObject,
  patch: Exclude<Patch, { readonly type: "apply" }>,
): StoredObject {
  if (patch.type !== "json") {
    const change = patch.type === "merge" ? mergePatched : strategicPatched;
    return asStored(change(object, patch.body));
  }
  const result = applyPatch(object, operationsOf(patch.body), "object");
  if ("problem" in result) throw invalid(resource, object.metadata.name, result.problem);
  return asStored(result.document);
}

function operationsOf(body: readonly object[]): readonly PatchOperation[] {
  return body.filter((one): one is PatchOperation => "op" in one && "path" in one);
}

/** Applies a JSON merge patch (RFC 7396). Fields without a value are not on the wire. */
function mergePatched(object: unknown, body: unknown): unknown {
  if (!isJsonObject(body)) return body;
  const result: Record<string, unknown> = isJsonObject(object) ? { ...object } : {};
  for (const [key, value] of Object.entries(body)) {
    if (value === null) delete result[key];
    else if (value !== undefined) result[key] = mergePatched(result[key], value);
  }
  return result;
}

const DELETED_ITEMS = "$deleteFromPrimitiveList/";
const ORDER = "$setElementOrder/";

// Merge keys of the lists that are patched so (k8s.io/api: patchMergeKey). Other lists of objects are replaced.
const MERGE_KEYS: Readonly<Record<string, string>> = {
  conditions: "type",
  addresses: "type",
  podIPs: "ip",
  hostIPs: "ip",
  containers: "name",
  initContainers: "name",
  ephemeralContainers: "name",
  env: "name",
  volumes: "name",
  webhooks: "name",
  ownerReferences: "uid",
  taints: "key",
};
const MERGED_PRIMITIVES = new Set(["finalizers"]);

/** Applies a strategic merge patch with those directives that clients of this project send. */
function strategicPatched(object: unknown, body: unknown): unknown {
  if (!isJsonObject(body)) return body;
  if (body.$patch === "replace") return without(body, "$patch");
  const result: Record<string, unknown> = isJsonObject(object) ? { ...object } : {};
  for (const [key, value] of Object.entries(body)) {
    if (key.startsWith(DELETED_ITEMS)) {
      const field = key.slice(DELETED_ITEMS.length);
      result[field] = listOf(result[field]).filter((item) => !listOf(value).includes(item));
    } else if (value === null) delete result[key];
    else if (Array.isArray(value)) result[key] = mergedList(key, listOf(result[key]), value);
    else if (value !== undefined && !key.startsWith(ORDER)) result[key] = strategicPatched(result[key], value);
  }
  return result;
}

function mergedList(field: string, known: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const items = patch.filter((item) => !isJsonObject(item) || item.$patch !== "replace");
  const mergeKey = MERGE_KEYS[field];
  if (items.length < patch.length) return items;
  if (mergeKey === undefined) return MERGED_PRIMITIVES.has(field) ? [...new Set([...known, ...items])] : items;
  const merged = new Map(known.map((item) => [keyOf(item, mergeKey), item]));
  for (const item of items) {
    const key = keyOf(item, mergeKey);
    if (isJsonObject(item) && item.$patch === "delete") merged.delete(key);
    else merged.set(key, strategicPatched(merged.get(key), item));
  }
  return [...merged.values()];
}

function keyOf(item: unknown, mergeKey: string): unknown {
  return isJsonObject(item) ? item[mergeKey] : item;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function without(object: JsonObject, key: string): JsonObject {
  const { [key]: _, ...rest } = object;
  return rest;
}
