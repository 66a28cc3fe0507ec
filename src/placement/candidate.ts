import type { Amounts } from "../api/quantity.ts";

/** What placement knows of one member: facts only, gathered by the caller. */
export interface Candidate {
  readonly name: string;
  /** Labels of the Cluster object: what selectors match. */
  readonly labels: Readonly<Record<string, string>>;
  /** Why nothing may be placed there now (not ready, cordoned, being removed); undefined when it may. */
  readonly closed?: { readonly reason: RefusalReason; readonly message: string };
  /** An answer of its API server is overdue: any other member that fits is better. */
  readonly overdue?: boolean;
  /** Summed over the member's schedulable nodes. */
  readonly allocatable: Amounts;
  /** Per resource, the most that one schedulable node has. */
  readonly largestNode: Amounts;
  /** What delegates there request already, those on their way included. */
  readonly used: Amounts;
}

/** Why a member does not get a pod. */
export type RefusalReason =
  | "NotSelected" // the author's names or selector leave it out
  | "UnknownCluster" // named by the author, and no Cluster has that name
  | "ClusterNotReady"
  | "Cordoned"
  | "ClusterBeingRemoved"
  | "TooLarge" // no node of it has that much
  | "Full" // not enough left of what its nodes have
  | "Unschedulable" // its own scheduler found no node in time
  | "RefusedByMember" // its API server refused the delegate
  | "NameTaken"; // a pod of that name, not Legation's, is there

/** One member's refusal, in words for people. */
export interface Refusal {
  readonly cluster: string;
  readonly reason: RefusalReason;
  readonly message: string;
}

/** One thing that decides which members may have a pod, or which are better for it. */
export interface Rule {
  /** Why the member may not have the pod now; undefined when it may. */
  readonly refusal?: (candidate: Candidate) => Pick<Refusal, "reason" | "message"> | undefined;
  /** How good the member is, lower being better; absent: all are alike. */
  readonly cost?: (candidate: Candidate) => number;
}
