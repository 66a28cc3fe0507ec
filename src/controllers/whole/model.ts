import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { MemberRecord } from "../../copies/object-members.ts";
import type { HeldWrites } from "../../runtime/held-writes.ts";
import type { Decision } from "../../runtime/requeue.ts";

/** The write of a status, to the write guard. */
export const STATUS = "status";
/** The write of the end of an object that is lost, to the write guard. */
export const LOSS = "loss";
/** The write of the members' record, to the write guard. */
export const MEMBERS = "members";

/** The pause before an object that waits is looked at again without an event: room in members is an event of pods only. */
export const LOOK_AGAIN_MS = 30_000;

/** The part of a view that the engine knows of each object. `Shown` is what is written of its copies. */
export interface Observed<T extends KubeObject, Shown> {
  readonly object: Stored<T>;
  /** The object's type is not delegated any more: objects are released, and copies stay as they are. Absent: it is. */
  readonly isRetired?: boolean;
  /** The status that was last sent, and when; epoch ms. */
  readonly sent?: { readonly shown: Shown; readonly at: number };
  /** Writes that the host refuses, or that another manager undoes. */
  readonly held?: HeldWrites;
}

/** A write on the host. Each has the object's resourceVersion or uid as its precondition. */
export type Action<T extends KubeObject, Assignment, Shown> =
  /** Adds the finalizer, without which nothing is created in a member. */
  | { readonly type: "hold"; readonly object: Stored<T> }
  /** Gives the object to members before anything is created in them, so that no other member has it. */
  | {
      readonly type: "record";
      readonly object: Stored<T>;
      readonly assignment: Assignment;
      /** The member that had it before, which is asked for a copy first, and the one that gets it, which is asked whether it takes one. */
      readonly move?: { readonly from: string; readonly to: string };
    }
  | { readonly type: "status"; readonly object: Stored<T>; readonly shown: Shown }
  /** Ends the object, or a share of it, as failed, after its member was asked for the copy. */
  | {
      readonly type: "fail";
      readonly object: Stored<T>;
      readonly member: string;
      /** The Cluster was removed, so nobody can be asked. */
      readonly isGone: boolean;
      readonly shown: Shown;
    }
  | { readonly type: "members"; readonly object: Stored<T>; readonly members: readonly MemberRecord[] }
  /** Lets the object go, after these members were asked for a copy. */
  | {
      readonly type: "release";
      readonly object: Stored<T>;
      readonly members: readonly string[];
      /** The label stays, since the DelegatedType may come back. */
      readonly keepsLabel?: boolean;
    }
  | { readonly type: "report"; readonly object: Stored<T>; readonly message: string };

export type WholeDecision<T extends KubeObject, Assignment, Shown> = Decision<Action<T, Assignment, Shown>>;

/** A step of a decision. Undefined: the next one decides. */
export type WholePhase<O, Answer> = (observed: O, now: number, wall: number) => Answer | undefined;

export type SharedDecision<T extends KubeObject> = WholeDecision<T, never, never>;
