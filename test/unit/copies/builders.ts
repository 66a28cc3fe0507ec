import type { KubeObject, Stored } from "../../../src/api/kubernetes.ts";
import type { DependencyObject } from "../../../src/copies/dependencies.ts";
import { type CopiedKind, contentText, copyPatch, type Drift, driftOf } from "../../../src/copies/kind.ts";
import type { HostIdentity } from "../../../src/pods/delegate.ts";

export const host = { id: "host-id", name: "cern" };

/** The host's. */
export function source(parts: DependencyObject = {}): Stored<DependencyObject> {
  const { metadata, ...rest } = parts;
  return { metadata: { name: "a", namespace: "team", uid: "source-uid", resourceVersion: "7", ...metadata }, ...rest };
}

/** The member's, as its API server has it. */
export function stored<T extends KubeObject>(copy: T, metadata: object = {}): Stored<T> {
  const { name = "" } = copy.metadata ?? {};
  return { ...copy, metadata: { ...copy.metadata, name, uid: "copy-uid", resourceVersion: "3", ...metadata } };
}

/** How a copy that is kept whole differs from its source. */
export function drift<T extends KubeObject>(
  kind: CopiedKind<T>,
  copy: Stored<T>,
  of: Stored<T>,
  by: HostIdentity,
): Drift {
  return driftOf(kind, copy, { source: of, host: by, sameContent: isSame(kind, copy, of, by) });
}

/** The patch that makes the copy like its source. */
export function patchOf<T extends KubeObject>(
  kind: CopiedKind<T>,
  copy: Stored<T>,
  of: Stored<T>,
  by: HostIdentity,
): object[] {
  return copyPatch(kind, copy, { source: of, host: by, sameContent: isSame(kind, copy, of, by) });
}

function isSame<T extends KubeObject>(kind: CopiedKind<T>, copy: Stored<T>, of: Stored<T>, by: HostIdentity): boolean {
  return contentText(kind, copy) === contentText(kind, kind.body(of, by));
}
