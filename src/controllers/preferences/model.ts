import type { ObjectKey } from "../../api/kubernetes.ts";
import type { Amounts } from "../../api/quantity.ts";
import type { Replicas } from "../../placement/division.ts";
import type { OpenMembers } from "../../placement/open-division.ts";
import type { HeldWrites } from "../../runtime/held-writes.ts";

/** One replica that has a member. */
export interface Replica {
  readonly uid: string;
  /** Of the proxy as it was looked at. */
  readonly resourceVersion: string;
  readonly key: ObjectKey;
  readonly member: string;
  readonly ready: boolean;
  /** What its deletion costs, as Legation wrote it. */
  readonly cost?: number;
  /** Its owner heeds deletion costs, and nobody else has written one. */
  readonly costed: boolean;
  /** RFC 3339. */
  readonly createdAt: string;
}

/** Replicas of the other ReplicaSets of a Deployment or Rollout. */
export interface OtherReplicas {
  /** What each of these ReplicaSets has placed. */
  readonly placed: readonly Replicas[];
  /** How many of them are not ready, or have no member yet. */
  readonly unready: number;
  /** One of these ReplicaSets has more: it moves for all, so that two never move for the same place. */
  readonly larger: boolean;
}

/** Everything that one decision about an owner's replicas depends on. */
export interface Observed extends OpenMembers {
  /** `namespace/name` of the workload: makes clusters of one weight come in an order of its own. */
  readonly key: string;
  /** Its owner makes a new one for each that is evicted, and loses nothing by it. */
  readonly movable: boolean;
  readonly replicas: readonly Replica[];
  /** How many have no member yet. */
  readonly waiting: number;
  /** Some were evicted and have no replacement yet, which is waited for until then; epoch ms. */
  readonly replacingUntil?: number;
  /** What other ReplicaSets of its Deployment or Rollout have while this is updated; absent: nothing. */
  readonly others?: OtherReplicas;
  /** Some member has still to be read: until then it looks closed, and all is out of order. */
  readonly settling: boolean;
  readonly requests: Amounts;
  /** Moves that brought a member no replica, by member: not tried again for a while. */
  readonly heldMoves: HeldWrites;
}

/** One write. */
export type Action =
  | {
      readonly type: "evict";
      readonly uid: string;
      readonly key: ObjectKey;
      readonly from: string;
      readonly to: string;
    }
  | {
      readonly type: "cost";
      readonly uid: string;
      /** Nothing is written when the proxy has changed since: its author may have written a cost. */
      readonly resourceVersion: string;
      readonly key: ObjectKey;
      readonly cost: number;
    };
