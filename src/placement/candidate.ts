import type { LimitAmounts } from "../api/cluster-policy.ts";
import type { Taint } from "../api/kubernetes.ts";
import type { Selector } from "../api/label-selector.ts";
import type { Amounts } from "../api/quantity.ts";
import type { NodeFit, NodeNeeds } from "./node-fit.ts";

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
  /** What of its nodes delegates there take already, those on their way included. */
  readonly used: Amounts;
  /** What pods that are not this host's request there, as last read; absent: not known. */
  readonly foreign?: Amounts;
  /** Taints that count for pods, of its Cluster and its virtual node. */
  readonly taints?: readonly Taint[];
  /** The host's namespaces that may use it, by their labels; absent: all. */
  readonly admits?: Selector;
  readonly limits?: LimitAmounts;
  /**
   * What the delegates of a namespace request, or those of all, as limits count it: with those that wait for a node of a size
   * that is not there. Absent: `used` is all that is known.
   */
  readonly usedIn?: (namespace?: string) => Amounts;
  /** The part of that which is kept for a proxy that has no delegate there yet. */
  readonly keptFor?: (proxyUid: string) => Amounts | undefined;
  /** What this host's pods of less than a priority take of its nodes: room that its scheduler may make. Absent: not known. */
  readonly preemptible?: (priority: number) => Amounts;
  /** Reports whether any of its nodes has a label of this key; absent: not known. */
  readonly nodesHave?: (key: string) => boolean;
  /** What its nodes have for a pod that may not go to each of them; absent: not known. */
  readonly nodesFor?: (needs: NodeNeeds) => NodeFit;
}

/** Why a member does not get a pod. */
export type RefusalReason =
  | "NotSelected" // the author's names or selector leave it out
  | "NotPreferred" // the author's scheduling preferences give it no more of the workload's replicas
  | "UnknownCluster" // named by the author, and no Cluster has that name
  | "NotPermitted" // its Cluster does not admit the namespace
  | "Tainted" // its Cluster has a taint that the pod does not tolerate
  | "OtherGroup" // the pod's group runs in another member, or has no member yet
  | "Spread" // the pod would make the spread more uneven than the author allows
  | "OverLimit" // its Cluster limits what the host's pods request there
  | "ClusterNotReady"
  | "Cordoned"
  | "ClusterBeingRemoved"
  | "NoNodeMatches" // no node of it is one that the pod may go to
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
  /** What the cost is of, for people. */
  readonly concern?: string;
  /** A member that is best by it is worth waiting for when its API server is late. */
  readonly awaits?: boolean;
}
