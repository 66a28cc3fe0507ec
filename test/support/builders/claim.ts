import type { ObjectMeta, PersistentVolumeClaim, Stored } from "../../../src/api/kubernetes.ts";
import { type StorageClasses, toMemberClaim } from "../../../src/copies/claims.ts";
import type { HostIdentity } from "../../../src/pods/delegate.ts";

/** Overrides of the built claim's defaults. */
export interface ClaimParts {
  readonly uid?: string;
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec?: PersistentVolumeClaim["spec"];
  readonly status?: PersistentVolumeClaim["status"];
}

/** The host that builders speak of. */
export const HOST: HostIdentity = { id: "host-id", name: "cern" };

/** A claim of the host: `data`, 1Gi, of no class. */
export function claim({ uid = "uid-1", metadata, spec, status }: ClaimParts = {}): Stored<PersistentVolumeClaim> {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { namespace: "team", name: "data", uid, resourceVersion: "7", ...metadata },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...spec },
    status: status ?? { phase: "Pending" },
  };
}

/** The claim that a member has in the place of the host's. */
export function memberClaim(
  of: Stored<PersistentVolumeClaim>,
  { uid = "member-uid", metadata, spec, status }: ClaimParts = {},
  classes?: StorageClasses,
): Stored<PersistentVolumeClaim> {
  const made = toMemberClaim(of, HOST, classes);
  return {
    ...made,
    metadata: { ...made.metadata, name: of.metadata.name, uid, resourceVersion: "70", ...metadata },
    spec: { ...made.spec, ...spec },
    status: status ?? { phase: "Bound", capacity: { storage: "1Gi" } },
  };
}
