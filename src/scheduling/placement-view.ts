import type { Pod, Stored } from "../api/kubernetes.ts";
import type { Refusal } from "../placement/candidate.ts";
import type { Ranking } from "../placement/rank.ts";
import type { Memory } from "./memory.ts";

/** Facts beside the members that a pod's place depends on, as plain data. */
export interface PlacementFacts {
  /** False: the pod's namespace is not opted in, as far as is known. Absent: it is. */
  readonly optedIn?: boolean;
  /** The pod's workload, as `Deployment/web`, while its wishes are not known. An event tells when they are. */
  readonly unseen?: string;
  /** Why the placement annotations cannot be read: a namespace's defaults changed since admission. */
  readonly invalid?: string;
  /** The members that the author names, whether they exist or not. */
  readonly named?: readonly string[];
  /** A member that the division of the workload counts on is still being read; an event tells when it has been. */
  readonly syncing?: boolean;
  /** Another pod of the group is being placed first; an event tells when this one may follow. */
  readonly follows?: boolean;
  /** The member of the pod's group. */
  readonly home?: string;
  /** The rest of a gang that has no home yet, unless nothing of it binds the pod. */
  readonly gang?: {
    /** Shown in messages. */
    readonly text: string;
    /** Members that the other pods have delegates in, or are about to. The pod enters no other before they have left. */
    readonly heldIn: readonly string[];
    /** The others wait for this pod, which has no member. */
    readonly leads?: true;
  };
}

/** The other pods that a refusal holds for: those with the same spec, or also with the same labels. */
export type SharedBy = "spec" | "labels";

/** A refusal for which a pod is not tried in a member now. */
export interface Pause {
  readonly refusal: Refusal;
  /** When it is over, unless an event ends it before; epoch ms. */
  readonly until: number;
}

/** A member as a decision on a pod's place sees it. */
export interface PlaceableMember {
  readonly name: string;
  /** Counts the changes of its nodes that matter to placement. */
  readonly nodesVersion: number;
  /** The pod under the proxy's name that this host made in the member, whichever proxy uid it was made for. */
  readonly delegate?: Stored<Pod>;
  /** Refusal of a pod like this one a moment ago. Only set with a ranking. */
  readonly refusedBefore?: Pause;
  /** When it is forgotten what its admission makes of such pods; epoch ms. Only set with a ranking. */
  readonly learntUntil?: number;
}

/** The input of a decision on a pod's place, as plain data that can be logged and replayed. */
export interface PlacementView extends PlacementFacts {
  readonly members: readonly PlaceableMember[];
  readonly memory: Pick<Memory, "attempts">;
  /** The members for this pod, best first. Absent: another phase decides, or it is not known yet. */
  readonly ranking?: Ranking;
}
