import type { KubeObject, Stored } from "../api/kubernetes.ts";

/** True when both are one state of an object. */
export function sameVersion(a: Stored<KubeObject>, b: Stored<KubeObject>): boolean {
  return a.metadata.resourceVersion === b.metadata.resourceVersion;
}

/** Resource versions of one resource are comparable as decimal numbers (KEP-5504, stable since 1.35). */
export function isBefore(version: string, other: string): boolean {
  return version.length === other.length ? version < other : version.length < other.length;
}
