import { isJsonObject, type JsonObject } from "../api/json.ts";
import type { PodSpec } from "../api/kubernetes.ts";

/** Fields that an API server without them silently drops (dropDisabledFields in Kubernetes' pkg/api/pod/util.go). */
const DROPPABLE: ReadonlySet<string> = new Set([
  "claims",
  "clusterTrustBundle",
  "fileKeyRef",
  "hostnameOverride",
  "podCertificate",
  "resourceClaims",
  "restartPolicyRules",
  "schedulingGroup",
  "sleep",
  "stopSignal",
  "supplementalGroupsPolicy",
  "workloadRef",
]);
const IMAGE_VOLUME = "image";

/** Returns paths, such as `spec.volumes[data].image`. */
export function droppedFields(sent: PodSpec, stored: PodSpec): string[] {
  const there = new Set(droppable(stored));
  return droppable(sent).filter((path) => !there.has(path));
}

export function droppable(spec: PodSpec): string[] {
  return droppableIn(spec as JsonObject, "spec");
}

function droppableIn(fields: JsonObject, path: string): string[] {
  return Object.entries(fields).flatMap(([key, value]) => {
    const at = `${path}.${key}`;
    if (isDroppable(path, key, value)) return [at];
    if (Array.isArray(value)) return value.flatMap((item, index) => droppableItem(item, at, index));
    return isJsonObject(value) ? droppableIn(value, at) : [];
  });
}

function droppableItem(item: unknown, path: string, index: number): string[] {
  if (!isJsonObject(item)) return [];
  return droppableIn(item, `${path}[${typeof item.name === "string" ? item.name : index}]`);
}

function isDroppable(path: string, key: string, value: unknown): boolean {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return false;
  // These values equal the default, so dropping them changes nothing.
  if (key === "hostUsers") return value === false;
  if (key === "procMount") return value !== "Default";
  if (key === "recursiveReadOnly") return value !== "Disabled";
  if (key === IMAGE_VOLUME) return /^spec\.volumes\[[^\]]*\]$/.test(path);
  // Dropping it turns a sidecar into an init container that never ends, or changes whether a container restarts.
  if (key === "restartPolicy") return /^spec\.(?:initContainers|containers)\[[^\]]*\]$/.test(path);
  if (key === "resources") return path === "spec";
  return DROPPABLE.has(key);
}
