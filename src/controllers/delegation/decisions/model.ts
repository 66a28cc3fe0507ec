import type { ObjectRef, Pod, Stored } from "../../../api/kubernetes.ts";
import type { Amounts } from "../../../api/quantity.ts";
import type { Candidate, Refusal, Rule } from "../../../placement/candidate.ts";
import type { HostIdentity } from "../../../pods/delegate.ts";
import type { StatusPatch } from "../../../pods/feedback.ts";
import type { ResizeRefusal } from "../../../pods/forward.ts";
import type { ForwardPatch } from "../../../pods/forward-record.ts";
import type { ApiAccess } from "../../../pods/home-api.ts";
import type { Merged } from "../../../pods/host-admission.ts";
import type { OverriddenSpec } from "../../../pods/overrides.ts";
import type { RefusedSince } from "../../../pods/proxy-conditions.ts";
import type { Needs } from "./needs.ts";
import type { Purpose } from "./purpose.ts";

/** One member, as far as one proxy is concerned. */
export interface MemberView {
  readonly name: string;
  /** Its API server answers now; what its stores show is current. */
  readonly reachable: boolean;
  /** Since when it is reachable, or when it last began to be; epoch ms. */
  readonly reachableSince: number;
  /** Its delegates have been listed since this controller started to lead. */
  readonly read: boolean;
  /** It has failed to answer a moment ago, and does not count as lost: that it is, or answers again, is an event of its own. */
  readonly faltering?: boolean;
  /** The pod under the proxy's name that this host made there, whichever proxy uid it was made for. */
  readonly delegate?: Stored<Pod>;
  /** Last state of a delegate under that name which was seen to go. */
  readonly departed?: Stored<Pod>;
  readonly candidate: Candidate;
  /** How long its scheduler may take before the next member is tried. */
  readonly scheduleTimeoutMs: number;
  /** Counts the changes of its nodes that matter to placement. */
  readonly nodesVersion: number;
}

/** One attempt to run a proxy in a member. */
export interface Attempt {
  /** When its delegate was created or first seen; epoch ms. */
  readonly since: number;
  /** When it first failed with an error that may pass by itself; epoch ms. */
  readonly failingSince?: number;
  /** When it was first refused, for a pod that this would end if it lasted; epoch ms. */
  readonly refusingSince?: number;
  /** No member had room by what Legation knows: it waits there until one has. */
  readonly parked?: boolean;
  /** Why it did not work out; undefined while it is under way. */
  readonly refusal?: Refusal;
  /** No other attempt there before this time; epoch ms. */
  readonly until?: number;
  /** `nodesVersion` at the refusal: a member whose scheduler found no node may be tried again once its nodes changed. */
  readonly nodesVersion?: number;
  /** Refusals in a row, for the backoff. */
  readonly refusals: number;
  /** It was tried again soon after a refusal, which happens once. */
  readonly hurried?: boolean;
}

/** Creates that a member has neither done nor refused, as far as its answers tell. */
export interface Doubt {
  /** When the first of them failed; epoch ms. */
  readonly since: number;
  /** When the last one failed; epoch ms. */
  readonly lastAt: number;
  /** The last one's error. */
  readonly message: string;
}

/** An API server gives up what it has begun after its --request-timeout, a minute by default. */
export const CREATE_ENDS_MS = 60_000;

/** What the controller remembers of one proxy uid. Losing it costs time, never correctness. */
export interface Memory {
  /** The proxy came to be while this controller led: no earlier leader can have made a delegate for it. */
  readonly fresh: boolean;
  /** Members that it may have a delegate in as long as they have not been read: they are reached in another way than before. */
  readonly unproven?: ReadonlySet<string>;
  /** Members that were asked for it when all that an earlier leader had sent was done, and that do not have it. */
  readonly denied?: ReadonlySet<string>;
  readonly attempts: ReadonlyMap<string, Attempt>;
  /** Member where a create was sent and that has not shown the delegate yet: it may be there, so nobody else gets it. */
  readonly uncertain?: string;
  /** Why that is not known, when its API server has not given a plain answer. */
  readonly doubt?: Doubt;
  /** Lost member whose node the proxy is being bound to: that Binding may be done late, so nobody else gets the pod. */
  readonly binding?: string;
  /** Member where room is kept for the pod until its delegate elsewhere has gone. */
  readonly promised?: string;
  /** Member where room was last reserved for the pod: the only one that may still count it so. */
  readonly room?: string;
  /** Message of the last condition or event that told why the proxy waits. */
  readonly reported?: string;
  /** When it said that; epoch ms. */
  readonly reportedAt?: number;
  /** Why it waited then, in one word. */
  readonly reportedReason?: string;
  /** The uid of the last delegate that was made for it. */
  readonly made?: string;
  /** The uid of the delegate that its member has been asked for, and does not have. */
  readonly gone?: string;
  /** What is not sent again, and until when (epoch ms): patches, as JSON, that were refused or changed nothing, `undone` ones, and `MARKS`. */
  readonly ineffective?: ReadonlyMap<string, number>;
  /** Writes for it that clusters go on refusing, by action and cluster. */
  readonly refused?: ReadonlyMap<string, LastingRefusal>;
  /** The resize that the delegate's member has refused. */
  readonly resize?: RefusedResize;
}

/** A write that a cluster goes on refusing, as the author was told. */
export interface LastingRefusal extends RefusedSince {
  /** When its event was told; epoch ms. */
  readonly at: number;
  /** When the refusal counts as over, unless it is repeated; epoch ms. */
  readonly until: number;
}

/** A resize that a member has refused. */
export interface RefusedResize extends ResizeRefusal {
  /** As JSON, what of the spec was to be changed. */
  readonly spec: string;
  /** Until when it is not tried again; epoch ms. */
  readonly until: number;
}

export type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

/** Whether something, as `Memory.ineffective` has it, is not to be tried now. */
export function isIneffective({ ineffective }: Memory, what: string, now: number): boolean {
  return now < (ineffective?.get(what) ?? 0);
}

/** Whether a member that has not been read may have a delegate of the proxy. */
export function mayHold({ fresh, unproven }: Memory, member: string): boolean {
  return !fresh || unproven?.has(member) === true;
}

/** The part that other pods must share with a refused one for its refusal to hold for them: the spec, or also the labels. */
export type SharedBy = "spec" | "labels";

/** What a member has said of pods of one shape. */
export interface ShapeRefusal {
  readonly refusal: Refusal;
  /** One of them is tried again then; epoch ms. */
  readonly until: number;
}

/** Everything that one decision depends on. */
export interface Observed {
  readonly ref: ObjectRef;
  readonly host: HostIdentity;
  readonly proxy: Stored<Pod> | undefined;
  readonly members: readonly MemberView[];
  readonly memory: Memory;
  /** Why the author's placement leaves a member out; undefined when it does not. What is left out never had the pod. */
  readonly excludes: (candidate: Candidate) => string | undefined;
  /** What a member lacks for the pod at present: it may have had the pod all the same. */
  readonly lacks?: (candidate: Candidate) => string | undefined;
  /** What the pod requests in a member; absent: what its spec says, everywhere. */
  readonly requestsIn?: (candidate: Candidate) => Amounts;
  /** What else refuses or prefers members at present, strongest preference first; asked only when the pod needs a place. */
  readonly rules?: () => readonly Rule[];
  /** False: the pod's namespace is not opted in, as far as is known. Absent: it is. */
  readonly optedIn?: boolean;
  /** When the proxy came, or was last seen with a scheduling gate; epoch ms. Absent: it was created then. */
  readonly waitingSince?: number;
  /** A member that matters to which one is best has still to be read; that it has been is an event of its own. */
  readonly settling?: boolean;
  /** Another pod of its group is being placed, and it will follow; that it can is an event of its own. */
  readonly follows?: boolean;
  /** Why a member is not asked for a place which it has just refused to another pod, for what they have in common. */
  readonly refusedBefore?: (member: string) => ShapeRefusal | undefined;
  /** The members that the author names, whether they exist or not. */
  readonly named?: readonly string[];
  /** Why the placement could not be read at all (a namespace's defaults changed since admission). */
  readonly invalid?: string;
  /** What the pod's in-cluster configuration leads to in a member that may have it. */
  readonly apiAccess: (member: string) => ApiAccess;
  /** How the pod is to reach the host from a member is still being found out. Absent: it is known. */
  readonly apiPending?: (member: string) => boolean;
  /** The proxy's spec as a member is to have it; absent: as it is. */
  readonly specIn?: (candidate: Candidate) => OverriddenSpec;
  /** Parts of the proxy's spec that the host's admission merged into it, and that no delegate gets. Optional. */
  readonly merged?: Merged | undefined;
  /** What the proxy needs in a member before its delegate; absent, or without an answer: nothing. */
  readonly needs?: () => Needs | undefined;
  /** The virtual node is not Ready: how its pods are, nobody knows. Absent: it is. */
  readonly unheard?: (member: string) => boolean;
  /** The virtual node was declared out of service: nothing is waited for there. */
  readonly outOfService: (member: string) => boolean;
}

/** A member that is asked for a delegate. */
export interface AskedMember {
  readonly name: string;
  /** What was read of it before says nothing: requests were under way; epoch ms. */
  readonly since: number;
}

/** One write, or one note to the controller's memory. Each names its cluster and carries its preconditions. */
export type Action =
  | {
      readonly type: "create";
      readonly member: string;
      readonly delegate: Pod;
      readonly proxyUid: string;
      /** The proxy has a controller: a member's own must not take the delegate for one of theirs. */
      readonly controlled: boolean;
      /** There is no room by what Legation knows, and none elsewhere. */
      readonly parked?: boolean;
    }
  /** Has what the pod needs made in a member, before its delegate. */
  | { readonly type: "prepare"; readonly member: string; readonly proxyUid: string }
  /** Keeps room in a member for a pod whose delegate elsewhere must go first, so that no other is sent there too. */
  | { readonly type: "promise"; readonly member: string; readonly proxyUid: string; readonly requests: Amounts }
  | {
      readonly type: "delete";
      readonly member: string;
      readonly uid: string;
      /** The delegate's own when absent. */
      readonly graceSeconds?: number;
      /** Nothing is deleted when the delegate has changed since. */
      readonly resourceVersion?: string;
      /** The proxy is bound to another member, and waits for nothing that this one does or does not do. */
      readonly surplus?: boolean;
    }
  /** Deletes a delegate that seems to have no proxy, after a live read of the host has confirmed it. */
  | { readonly type: "sweep"; readonly member: string; readonly uid: string; readonly proxyUid: string }
  /** Finds out whether a create whose answer was lost has made a delegate. */
  | {
      readonly type: "resolve";
      readonly member: string;
      readonly proxyUid: string;
      /** What is noted of the member when it has not. */
      readonly refusal?: Refusal;
    }
  /** Asks members, all at once, for a delegate that an earlier leader may have had made there a moment ago. */
  | { readonly type: "ask"; readonly proxyUid: string; readonly members: readonly AskedMember[] }
  /** Asks the member itself for a delegate that it does not show any more, which gets its marks back when it is there. */
  | {
      readonly type: "look";
      readonly member: string;
      readonly proxyUid: string;
      readonly delegateUid: string;
      /** Its proxy is being deleted, with this grace: it ends, too, when it cannot have its marks. */
      readonly ends?: { readonly gracePeriodSeconds?: number };
    }
  | {
      readonly type: "bind";
      readonly member: string;
      readonly proxyUid: string;
      /** Absent: the member is lost, and whether it has a delegate is not known. */
      readonly delegateUid?: string;
      readonly memberNode?: string;
    }
  /** Puts the finalizer on a proxy that has overflowed, before it gets a delegate. */
  | { readonly type: "hold"; readonly proxyUid: string }
  /** Records another delegate for a bound proxy whose first one never started, or the first of one that was bound without. */
  | {
      readonly type: "record";
      readonly proxyUid: string;
      /** The proxy's, which had never started by then: nothing is recorded when it has changed since. */
      readonly resourceVersion: string;
      readonly delegateUid: string;
      readonly memberNode: string;
    }
  /** `resourceVersion` is the delegate's that the patch was reckoned from, and a precondition. */
  | {
      readonly type: "forward";
      readonly member: string;
      readonly proxyUid: string;
      readonly patch: ForwardPatch;
      readonly resourceVersion: string;
      /** Absent for what is not counted. */
      readonly purpose?: Purpose;
    }
  /** `resourceVersion` is the proxy's that the patch was reckoned from. */
  | { readonly type: "status"; readonly patch: StatusPatch; readonly resourceVersion: string }
  /** Tells the author why the pod waits: condition and event. `again`: the condition says so already, and the event is old. */
  | {
      readonly type: "report";
      readonly proxyUid: string;
      readonly reason: string;
      readonly message: string;
      /** The proxy is bound, and waits in its member. */
      readonly bound?: true;
      readonly again?: true;
    }
  /** Tells the author, in an event, of members that did not take a pod which another one has now. */
  | { readonly type: "announce"; readonly proxyUid: string; readonly reason: string; readonly message: string }
  /** Deletes the proxy with grace 0, as kubelet does when a pod's containers are gone. */
  | { readonly type: "finish"; readonly proxyUid: string }
  /** Deletes the proxy, whose delegate is being deleted, so that its controller replaces it now and not when that has gone. */
  | { readonly type: "evict"; readonly proxyUid: string; readonly graceSeconds: number }
  /** Removes the finalizer from the proxy. */
  | { readonly type: "release"; readonly proxyUid: string }
  | {
      readonly type: "refuse";
      readonly proxyUid: string;
      readonly refusal: Refusal;
      readonly nodesVersion: number;
      /** Which other pods it holds for; undefined: for none. */
      readonly sharedBy: SharedBy | undefined;
    };

/** What to do for one proxy now, and when to look again when nothing happens. */
export interface DelegationDecision {
  readonly actions: readonly Action[];
  /** One word for logs and metrics. */
  readonly outcome: Outcome;
  /** Epoch ms. */
  readonly requeueAt?: number;
}

export type Outcome =
  | "Orphaned" // delegates without a proxy
  | "Gated"
  | "Placing"
  | "Scheduling" // the member's scheduler has the delegate
  | "Withdrawing" // a delegate must go before the next member is tried
  | "Waiting" // no member can be given the pod now
  | "Preparing" // the member is given what the pod needs
  | "Binding"
  | "Running"
  | "Unreachable" // its member does not answer
  | "Looking" // whether the delegate has gone, or only what it is known by
  | "Lost" // the delegate went without being asked to
  | "Finished"
  | "Ending"
  | "Released";
