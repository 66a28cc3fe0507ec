import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { isRecord } from "./status.ts";

/** True for what an API server sends as an object: the fields that `Stored` promises are there. */
export function isStored<T extends KubeObject>(value: unknown): value is Stored<T> {
  if (!isRecord(value) || !isRecord(value.metadata)) return false;
  const { name, uid, resourceVersion } = value.metadata;
  return typeof name === "string" && typeof uid === "string" && typeof resourceVersion === "string";
}
