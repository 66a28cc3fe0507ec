import type { ObjectRef, PersistentVolumeClaim, Stored } from "../../api/kubernetes.ts";
import type { StorageClasses } from "../../copies/claims.ts";
import type { HostIdentity } from "../../pods/delegate.ts";

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
  /** That member refused it a short while ago. */
  readonly refused: boolean;
  /** That member was read live a short while ago, since its watch does not show the claim. */
  readonly looked: boolean;
  /** Another manager keeps removing the owner annotation of the member's claim: until when it is left so; epoch ms. */
  readonly contestedUntil?: number;
  /** The member's recent refusal to grow its claim to the host's size. */
  readonly refusedSize?: string;
}

/** A write to the host's or the member's claim. */
export type Action =
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
  /** Reads the member live: is its claim really gone? */
  | { readonly type: "look"; readonly member: string; readonly claim: Stored<PersistentVolumeClaim> }
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
