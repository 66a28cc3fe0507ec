import type { ObjectRef, PersistentVolumeClaim, Stored } from "../../api/kubernetes.ts";
import type { StorageClasses } from "../../copies/claims.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { HeldWrites } from "../../runtime/held-writes.ts";

/** The owner annotation of the member's claim, to the write guard. Held for the uid of that claim. */
export const MARKS = "marks";
/** The size of the member's claim, to the write guard. Held for `sizeContent`. */
export const SIZE = "size";

/** Names the creation in the member to the write guard. Held for the uid of the host's claim. */
export function creationIn(member: string): string {
  return `creation in ${member}`;
}

/** Names a creation whose result is not known. It is sent again; only what pods are told of it is kept. */
export function uncertainCreationIn(member: string): string {
  return `uncertain creation in ${member}`;
}

export function sizeContent(memberClaimUid: string, size: string): string {
  return `${memberClaimUid}/${size}`;
}

/** A claim that this host made in a member, under the name of the host's. */
export interface MemberClaim {
  readonly member: string;
  readonly usable: boolean;
  /** Created while there was no leader: the host was restored from a backup and has forgotten the claim. */
  readonly held: boolean;
  readonly claim: Stored<PersistentVolumeClaim>;
}

/** Everything that one decision on a claim depends on. */
export interface Observed {
  readonly ref: ObjectRef;
  readonly host: HostIdentity;
  /** The host's claim. */
  readonly claim?: Stored<PersistentVolumeClaim>;
  readonly copies: readonly MemberClaim[];
  /** The member that has it, or is to have it. */
  readonly home?: string;
  /** That member answers, and its claims were read. */
  readonly usable: boolean;
  readonly classes?: StorageClasses;
  /** Writes that members refuse or another manager undoes. */
  readonly heldWrites?: HeldWrites;
}

/** A write to the host's or the member's claim. */
export type Action =
  /** Forgets a refusal whose time is over, so that waiting pods ask again. */
  | { readonly type: "reconsider"; readonly write: string }
  /** Writes the member's name on the host's claim, before anything is made there. */
  | { readonly type: "assign"; readonly member: string; readonly uid: string; readonly resourceVersion: string }
  /** Removes the name, since the member refuses the claim. */
  | { readonly type: "unassign"; readonly uid: string; readonly resourceVersion: string }
  /** Creates the member's claim, for the host's of that uid. */
  | {
      readonly type: "create";
      readonly member: string;
      readonly uid: string;
      readonly object: PersistentVolumeClaim;
    }
  | { readonly type: "grow"; readonly member: string; readonly uid: string; readonly size: string }
  /** Reads the member live, since its watch does not show the claim that it had. */
  | { readonly type: "confirmLost"; readonly member: string; readonly claim: Stored<PersistentVolumeClaim> }
  /** Restores the owner annotation of the member's claim. */
  | {
      readonly type: "mark";
      readonly member: string;
      readonly uid: string;
      readonly annotations: Record<string, string>;
    }
  /** Writes the status of the member's claim to the host's. */
  | { readonly type: "tell"; readonly uid: string; readonly status: string }
  /** Deletes an orphan, after a live read of the host confirmed that its claim is gone. */
  | { readonly type: "sweep"; readonly member: string; readonly uid: string; readonly ownerUid: string };
