import type { AnyObject } from "../../../api/delegated-type.ts";
import type { JsonObject } from "../../../api/json.ts";
import type { Stored } from "../../../api/kubernetes.ts";
import type { MemberRecord, Place } from "../../../copies/object-members.ts";
import type { HeldWrites } from "../../../runtime/held-writes.ts";

/** The write of a status, to the write guard. */
export const STATUS = "status";
/** The write of the members' record, to the write guard. */
export const MEMBERS = "members";

/** Everything that a decision on one object depends on. */
export interface Observed {
  readonly object: Stored<AnyObject>;
  /** The DelegatedType is being deleted: objects are released, and copies stay as they are. */
  readonly isRetired: boolean;
  /** Why no member is looked for. */
  readonly problem?: string;
  readonly places: readonly Place[];
  /** Members that may have the object, best first, where one gets it and none has it. Absent: all members get it, or one has it. */
  readonly choice?: { readonly fitting: readonly string[]; readonly why: string };
  /** The status that the object has from its copies. Undefined while none has one. */
  readonly status?: JsonObject;
  /** When the last status was sent; epoch ms. */
  readonly statusSentAt?: number;
  /** The members' record that the object lacks, without times of new states, and since when; epoch ms. */
  readonly staleMembers?: { readonly members: readonly MemberRecord[]; readonly since: number };
  /** Many copies of the type are being written, so that records of members wait. Default false. */
  readonly isBusy?: boolean;
  /** Writes that the host refuses, or that another manager undoes. */
  readonly held?: HeldWrites;
}

/** A write on the host. Each has the object's resourceVersion or uid as its precondition. */
export type Action =
  /** Adds the finalizer, without which nothing is created in a member. */
  | { readonly type: "hold"; readonly object: Stored<AnyObject> }
  /** Gives the object to a member before anything is created there, so that no other member has it. */
  | { readonly type: "record"; readonly object: Stored<AnyObject>; readonly member: string }
  | { readonly type: "status"; readonly object: Stored<AnyObject>; readonly status: JsonObject }
  /** Writes the members' record into an annotation. */
  | { readonly type: "members"; readonly object: Stored<AnyObject>; readonly members: readonly MemberRecord[] }
  /** Lets the object go, after these members were asked for a copy. */
  | {
      readonly type: "release";
      readonly object: Stored<AnyObject>;
      readonly members: readonly string[];
      /** The label stays, since the DelegatedType may come back. */
      readonly keepsLabel?: boolean;
    }
  | { readonly type: "report"; readonly object: Stored<AnyObject>; readonly message: string };

/** Actions for one object, and when to look again without an event. */
export interface ObjectDecision {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}
