import type { ObjectRef, PersistentVolumeClaim, Stored } from "../../api/kubernetes.ts";
import type { StorageClasses } from "../../copies/claims.ts";
import type { HostIdentity } from "../../pods/delegate.ts";

/** A member's claim under the name of the host's, which this host made. */
export interface MemberClaim {
  readonly member: string;
  readonly usable: boolean;
  /** It was made while nobody led: the host was restored from a backup, and has forgotten it. */
  readonly held: boolean;
  readonly claim: Stored<PersistentVolumeClaim>;
}

/** Everything that one decision on a claim depends on. */
export interface Observed {
  readonly ref: ObjectRef;
  readonly host: HostIdentity;
  /** The host's. */
  readonly claim?: Stored<PersistentVolumeClaim>;
  readonly copies: readonly MemberClaim[];
  /** The member that has it, or is to have it. */
  readonly home?: string;
  /** That member answers, and its claims have been read. */
  readonly usable: boolean;
  readonly classes?: StorageClasses;
  /** That member has refused it a short while ago. */
  readonly refused: boolean;
  /** That member was asked for the claim that its watch does not show, a short while ago. */
  readonly looked: boolean;
  /** Somebody else keeps taking off whose the member's claim is: until when it is left so; epoch ms. */
  readonly contestedUntil?: number;
  /** Why the member's claim does not become as large as the host's, when that was asked for a short while ago. */
  readonly refusedSize?: string;
}

/** One write. */
export type Action =
  /** Writes the member's name on the host's claim, before anything is made there. */
  | { readonly type: "assign"; readonly member: string; readonly uid: string; readonly resourceVersion: string }
  /** Takes it off again, where the member does not take the claim. */
  | { readonly type: "unassign"; readonly uid: string; readonly resourceVersion: string }
  /** Makes it, for the host's claim of that uid. */
  | {
      readonly type: "create";
      readonly member: string;
      readonly uid: string;
      readonly object: PersistentVolumeClaim;
    }
  | { readonly type: "grow"; readonly member: string; readonly uid: string; readonly size: string }
  /** Asks the member whether the claim that stood for the host's is really gone. */
  | { readonly type: "look"; readonly member: string; readonly claim: Stored<PersistentVolumeClaim> }
  /** Writes on the member's claim again whose it is. */
  | {
      readonly type: "mark";
      readonly member: string;
      readonly uid: string;
      readonly annotations: Record<string, string>;
    }
  /** Says on the host's claim how the member's is. */
  | { readonly type: "tell"; readonly uid: string; readonly status: string }
  /** Deletes a claim whose host's is gone, after a live read of the host has confirmed that. */
  | { readonly type: "sweep"; readonly member: string; readonly uid: string; readonly ownerUid: string };
