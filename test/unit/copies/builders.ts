import type { Stored } from "../../../src/api/kubernetes.ts";
import type { DependencyObject } from "../../../src/copies/dependencies.ts";

export const host = { id: "host-id", name: "cern" };

/** The host's. */
export function source(parts: DependencyObject = {}): Stored<DependencyObject> {
  const { metadata, ...rest } = parts;
  return { metadata: { name: "a", namespace: "team", uid: "source-uid", resourceVersion: "7", ...metadata }, ...rest };
}

/** The member's, as its API server has it. */
export function stored(copy: DependencyObject): Stored<DependencyObject> {
  return { ...copy, metadata: { ...copy.metadata, name: "a", uid: "copy-uid", resourceVersion: "3" } };
}
