import type { PersistentVolumeClaim, Stored } from "../../api/kubernetes.ts";
import type { StorageClasses } from "../../copies/claims.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { HeldWrites } from "../../runtime/held-writes.ts";

/** Held for the uid of the member's claim. */
export const CLAIM_MARKS = "marks";
/** Held for `sizeContent`. */
export const SIZE = "size";

/** Held for the uid of the host's claim. */
export function claimCreationIn(member: string): string {
  return `creation in ${member}`;
}

/** A creation whose result is not known is sent again; only what pods are told of it is kept. */
export function uncertainCreationIn(member: string): string {
  return `uncertain creation in ${member}`;
}

export function sizeContent(memberClaimUid: string, size: string): string {
  return `${memberClaimUid}/${size}`;
}

export interface MemberClaim {
  readonly member: string;
  readonly usable: boolean;
  /** Created while there was no leader: the host was restored from a backup and has forgotten the claim. */
  readonly held: boolean;
  readonly claim: Stored<PersistentVolumeClaim>;
}

export interface Observed {
  readonly host: HostIdentity;
  readonly claim?: Stored<PersistentVolumeClaim>;
  readonly copies: readonly MemberClaim[];
  readonly home?: string;
  /** That member answers, and its claims were read. */
  readonly usable: boolean;
  readonly classes?: StorageClasses;
  /** Writes that members refuse or another manager undoes. */
  readonly heldWrites?: HeldWrites;
}

export type Action =
  /** Forgets a refusal whose time is over, so that waiting pods ask again. */
  | { readonly type: "reconsider"; readonly write: string }
  /** Writes the member's name on the host's claim, before anything is made in the member. */
  | { readonly type: "assign"; readonly member: string; readonly uid: string; readonly resourceVersion: string }
  /** Removes the name, since the member refuses the claim. */
  | { readonly type: "unassign"; readonly uid: string; readonly resourceVersion: string }
  | {
      readonly type: "create";
      readonly member: string;
      readonly uid: string;
      readonly object: PersistentVolumeClaim;
    }
  | { readonly type: "grow"; readonly member: string; readonly uid: string; readonly size: string }
  /** Reads the member live, since its watch does not show the claim that it had. */
  | { readonly type: "confirmLost"; readonly member: string; readonly claim: Stored<PersistentVolumeClaim> }
  | {
      readonly type: "mark";
      readonly member: string;
      readonly uid: string;
      readonly annotations: Readonly<Record<string, string>>;
      readonly labels?: Readonly<Record<string, null>>;
    }
  | { readonly type: "tell"; readonly uid: string; readonly status: string }
  /** Deletes an orphan, after a live read of the host confirmed that its claim is gone. */
  | {
      readonly type: "sweep";
      readonly member: string;
      readonly uid: string;
      readonly resourceVersion: string;
      readonly ownerUid: string;
    };
