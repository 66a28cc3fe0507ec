import type { AnyObject } from "../../../api/delegated-type.ts";
import type { JsonObject } from "../../../api/json.ts";
import type { MemberRecord, ObjectMember } from "../../../copies/object-members.ts";
import type { WholeDecision, Observed as WholeObserved } from "../model.ts";

/** Everything that a decision on one object depends on. */
export interface Observed extends WholeObserved<AnyObject, JsonObject> {
  /** Why no member is looked for. */
  readonly problem?: string;
  readonly places: readonly ObjectMember[];
  /** Members that may have the object, best first, where one gets it and none has it. Absent: all members get it, or one has it. */
  readonly choice?: { readonly fitting: readonly string[]; readonly why: string };
  /** Kueue has still to admit the object. */
  readonly isQueued: boolean;
  /** Kueue has admitted it by a flavor of other members than the one on record, whose copy is suspended and has not begun. */
  readonly isMisplaced: boolean;
  /** The status that the object has from its copies. Undefined while none has one. */
  readonly status?: JsonObject;
  /** The members' record that the object lacks, without times of new states, and since when; epoch ms. */
  readonly staleMembers?: { readonly members: readonly MemberRecord[]; readonly since: number };
  /** Many copies of the type are being written, so that records of members wait. Default false. */
  readonly isBusy?: boolean;
}

export type ObjectDecision = WholeDecision<AnyObject, string | undefined, JsonObject>;
