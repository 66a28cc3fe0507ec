import type { KubeObject, Stored } from "../api/kubernetes.ts";

/** Reports whether both are the same version of an object. */
export function sameVersion(a: Stored<KubeObject>, b: Stored<KubeObject>): boolean {
  return a.metadata.resourceVersion === b.metadata.resourceVersion;
}

/** Compares resource versions of one resource as decimal numbers (KEP-5504, stable since 1.35). */
export function isBefore(version: string, other: string): boolean {
  return version.length === other.length ? version < other : version.length < other.length;
}

/** Reports whether both are states of one object, not of two by the same name. */
export function sameUid(a: Stored<KubeObject>, b: Stored<KubeObject>): boolean {
  return a.metadata.uid === b.metadata.uid;
}
