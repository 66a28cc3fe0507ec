import type { LimitAmounts } from "../api/cluster-policy.ts";
import type { Taint } from "../api/kubernetes.ts";
import type { Selector } from "../api/label-selector.ts";
import type { Amounts } from "../api/quantity.ts";
import type { NodeFit, NodeRequirements } from "./node-fit.ts";

export interface Candidate {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly closed?: Omit<Refusal, "cluster">;
  /** The member's API server is late to answer: any other member that fits ranks better. */
  readonly overdue?: boolean;
  /** Sum over the member's schedulable nodes. */
  readonly allocatable: Amounts;
  readonly largestNode: Amounts;
  /** Resources of these of which no node has any: the member's scheduler allocates devices for them. Absent: none. */
  readonly deviceResources?: ReadonlySet<string>;
  /** Room taken by this host's delegates, in-flight ones included. */
  readonly used: Amounts;
  /** Another candidate takes its place whenever its amounts change. Absent: they change in place, unnoticed. */
  readonly tracked?: true;
  /** Undefined if not known. */
  readonly foreign?: Amounts;
  readonly taints?: readonly Taint[];
  /** Undefined means all. */
  readonly admits?: Selector;
  readonly limits?: LimitAmounts;
  /** Includes delegates that wait for larger nodes. Undefined: `used` is all that is known. */
  readonly usedIn?: (namespace?: string) => Amounts;
  /** The part reserved for a proxy that has no delegate in it yet. */
  readonly reservedFor?: (proxyUid: string) => Amounts | undefined;
  /** Room that preemption may make. Undefined if not known. */
  readonly preemptible?: (priority: number) => Amounts;
  /** Returns undefined if not known. */
  readonly nodesHave?: (key: string) => boolean;
  /** Returns undefined if not known. */
  readonly nodesFor?: (needs: NodeRequirements) => NodeFit;
}

export type RefusalReason =
  | "NotSelected" // the author's names or selector leave it out, or what the pod needs cannot be there
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
  | "NoRoomForGang" // not enough left for all pods that have to start together
  | "Unschedulable" // its own scheduler found no node in time
  | "RefusedByMember" // its API server refused the delegate
  | "NameTaken"; // a pod of that name, not Legation's, is there

/** A refusal of one member. Refusals are compared by reason and `dedupe`, never by their words. */
export interface Refusal {
  readonly cluster: string;
  readonly reason: RefusalReason;
  readonly message: string;
  /** Equal for refusals that differ in amounts only. Default: the message. */
  readonly dedupe?: string;
  /** The member does not answer, or has not been read: once it has, its reason may be any other. */
  readonly silent?: true;
  /** The host has no virtual node for the member. */
  readonly lacksNode?: true;
}

/** A placement rule, as a plugin of kube-scheduler: it filters members, or scores them. */
export interface Rule {
  /** Returns why the member does not take the pod. Undefined if it may. */
  readonly filter?: (candidate: Candidate) => Pick<Refusal, "reason" | "message" | "dedupe"> | undefined;
  /** Higher is better. Absent: all members are alike. */
  readonly score?: (candidate: Candidate) => number;
  readonly concern?: string;
  /** A member that is best by this rule is worth a wait if its API server is late. */
  readonly awaits?: boolean;
}
