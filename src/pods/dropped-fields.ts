import type { PodSpec } from "../api/kubernetes.ts";

/**
 * Fields that an API server takes out of a pod, and says nothing, where its version or its feature gates do not have them; and
 * without which the pod is another. Source: dropDisabledFields in Kubernetes' pkg/api/pod/util.go, and decoding, which drops what it
 * does not know. What a member's own admission takes out is not among them.
 */
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

type Fields = Readonly<Record<string, unknown>>;

/** The fields of `sent` that `stored` has not, e.g. `spec.volumes[data].image`, among those that API servers drop. */
export function droppedFields(sent: PodSpec, stored: PodSpec): string[] {
  const there = new Set(droppable(stored));
  return droppable(sent).filter((path) => !there.has(path));
}

/** Where the spec has fields that an API server may drop. */
export function droppable(spec: PodSpec): string[] {
  return droppableIn(spec as Fields, "spec");
}

function droppableIn(fields: Fields, path: string): string[] {
  return Object.entries(fields).flatMap(([key, value]) => {
    const at = `${path}.${key}`;
    if (isDroppable(path, key, value)) return [at];
    if (Array.isArray(value)) return value.flatMap((item, index) => droppableItem(item, at, index));
    return isFields(value) ? droppableIn(value, at) : [];
  });
}

function droppableItem(item: unknown, path: string, index: number): string[] {
  if (!isFields(item)) return [];
  return droppableIn(item, `${path}[${typeof item.name === "string" ? item.name : index}]`);
}

function isDroppable(path: string, key: string, value: unknown): boolean {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return false;
  // What a pod is without the field anyway.
  if (key === "hostUsers") return value === false;
  if (key === "procMount") return value !== "Default";
  if (key === "recursiveReadOnly") return value !== "Disabled";
  if (key === IMAGE_VOLUME) return /^spec\.volumes\[[^\]]*\]$/.test(path);
  // A sidecar would be waited for, and never end; what its author wants to end would be started again, or the other way round.
  if (key === "restartPolicy") return /^spec\.(?:initContainers|containers)\[[^\]]*\]$/.test(path);
  if (key === "resources") return path === "spec";
  return DROPPABLE.has(key);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
