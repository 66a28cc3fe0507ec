import type { ObjectKey } from "../../api/kubernetes.ts";
import type { Amounts } from "../../api/quantity.ts";
import type { Replicas } from "../../placement/division.ts";
import type { OpenMembers } from "../../placement/open-division.ts";
import type { HeldWrites } from "../../runtime/held-writes.ts";

export interface Replica {
  readonly uid: string;
  /** The proxy's, as observed. */
  readonly resourceVersion: string;
  readonly key: ObjectKey;
  readonly member: string;
  readonly ready: boolean;
  readonly cost?: number;
  /** The owner reads deletion costs, and no other manager wrote one. */
  readonly costed: boolean;
  readonly createdAt: string;
  /** The workload's wishes exclude the member. */
  readonly excluded?: boolean;
}

export interface OtherReplicas {
  readonly placed: readonly Replicas[];
  readonly unready: number;
  /** A ReplicaSet of these has more replicas. It moves for all, so that two never move for the same place. */
  readonly larger: boolean;
}

export interface Observed extends OpenMembers {
  /** `namespace/name` of the workload. Orders members of equal weight. */
  readonly key: string;
  /** The owner replaces evicted replicas without loss. */
  readonly movable: boolean;
  readonly replicas: readonly Replica[];
  readonly waiting: number;
  /** End of the wait for replacements of evicted replicas; epoch ms. */
  readonly replacingUntil?: number;
  /** Replicas of other ReplicaSets of its Deployment or Rollout during an update. Absent: none. */
  readonly others?: OtherReplicas;
  /** A member is not read yet. Until then it looks closed, and the division wrong. */
  readonly syncing: boolean;
  readonly requests: Amounts;
  /** The workload has no division, and its replicas no deletion costs of Legation. */
  readonly undivided?: boolean;
  /** Held moves, by the member that did not take the replica. */
  readonly heldMoves: HeldWrites;
}

export type Action =
  | {
      readonly type: "evict";
      readonly uid: string;
      readonly key: ObjectKey;
      readonly from: string;
      /** The member whose place it is for. Absent: the workload is not divided, so any member may have the replacement. */
      readonly to?: string;
    }
  | {
      readonly type: "cost";
      readonly uid: string;
      /** Precondition: the author may have written a cost meanwhile. */
      readonly resourceVersion: string;
      readonly key: ObjectKey;
      readonly cost: number;
    };
