import type { Amounts } from "../../../api/quantity.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import type { WaitRefusal } from "../../../placement/needs.ts";
import type { StatusPatch } from "../../../pods/feedback.ts";
import type { ForwardPatch } from "../../../pods/forward-record.ts";
import { type Decision, lookAgain } from "../../../runtime/requeue.ts";
import type { SentBinding, Telling } from "../../../scheduling/memory.ts";
import type { SharedBy } from "../../../scheduling/placement-view.ts";
import type { PodView } from "./view.ts";
import type { Purpose } from "./write-purpose.ts";

/** A step of a pod's life. Undefined: the step is over or has not come. `now` is monotonic; epoch ms. */
export type Phase = (view: PodView, now: number) => DelegationDecision | undefined;

/** A phase's answer: what is done now, and when the pod is looked at again. */
export type DelegationDecision = Decision<Action, DecisionOutcome>;

/** The state of a pod after a decision, as metrics and logs name it. */
export type DecisionOutcome =
  | "Orphaned" // delegates without a proxy
  | "Gated"
  | "Placing"
  | "Scheduling" // the member's scheduler has the delegate
  | "Withdrawing" // a delegate must go before the next member is tried
  | "Waiting" // no member can be given the pod now
  | "Preparing" // the member is given what the pod needs
  | "Binding"
  | "Running"
  | "Refused" // the proxy's condition for refused writes changes
  | "Unreachable" // its member does not answer
  | "Looking" // the delegate has gone, or only lost its marks
  | "Vanished" // the delegate went although no one on the host deleted the proxy
  | "Finished"
  | "Ending"
  | "Released";

export function decided(
  outcome: DecisionOutcome,
  actions: readonly Action[],
  ...times: readonly (number | undefined)[]
): DelegationDecision {
  return { actions, outcome, ...lookAgain(...times) };
}

/** A member that is read for a delegate of the previous leader. */
export interface AskedMember {
  readonly name: string;
  /** Answers from before this time do not count: requests of the previous leader were in flight; epoch ms. */
  readonly since: number;
}

export type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

/** A write, or a change of the controller's memory. */
export type Action =
  /** Creates the delegate, which is derived from the proxy when the request is sent. */
  | {
      readonly type: "create";
      readonly member: string;
      readonly proxyUid: string;
      /** The proxy has a controller: a member's own must not adopt the delegate. */
      readonly controlled: boolean;
      /** No member has room by what Legation knows. */
      readonly parked?: boolean;
    }
  /** Has the member given what the pod needs, before its delegate. */
  | { readonly type: "prepare"; readonly member: string; readonly proxyUid: string }
  /** Reserves room in a member for a pod whose delegate elsewhere must go first. */
  | { readonly type: "reserve"; readonly member: string; readonly proxyUid: string; readonly requests: Amounts }
  /** Has the pods of a gang leave for the member that one of them goes to, which has no room to reserve. */
  | { readonly type: "gather"; readonly member: string; readonly proxyUid: string }
  /** Lets another pod of the gang lead. */
  | { readonly type: "handOver"; readonly proxyUid: string }
  | {
      readonly type: "delete";
      readonly member: string;
      readonly uid: string;
      /** Absent: the delegate's own. */
      readonly graceSeconds?: number;
      readonly resourceVersion?: string;
      /** The proxy is bound to another member and does not wait for this deletion. */
      readonly surplus?: boolean;
      /** The proxy was released before, as its deletion was forced. */
      readonly forced?: boolean;
    }
  /** Deletes a delegate that seems to have no proxy, after a live read of the host has confirmed it. */
  | { readonly type: "sweep"; readonly member: string; readonly uid: string; readonly proxyUid: string }
  | {
      readonly type: "confirmCreated";
      readonly member: string;
      readonly proxyUid: string;
      readonly refusal?: Refusal;
    }
  /** Asks members, all at once, for a delegate that the previous leader may have created a moment ago. */
  | { readonly type: "readPreviousDelegate"; readonly proxyUid: string; readonly members: readonly AskedMember[] }
  /** Asks for a delegate that the watch shows no more, and gives it its marks back if it is there. */
  | {
      readonly type: "restoreMarks";
      readonly member: string;
      readonly proxyUid: string;
      readonly delegateUid: string;
      /** The proxy is being deleted with this grace: a delegate that cannot have its marks is deleted, too. */
      readonly ends?: { readonly gracePeriodSeconds?: number };
    }
  | (SentBinding & { readonly type: "bind"; readonly proxyUid: string })
  /** Puts the finalizer on a proxy that was bound without it, before it gets a delegate. */
  | { readonly type: "addFinalizer"; readonly proxyUid: string }
  /** Records the delegate of a proxy that was bound without one, or whose first one never started. */
  | {
      readonly type: "recordDelegate";
      readonly proxyUid: string;
      /** The proxy's, as a precondition: it had not started by then. */
      readonly resourceVersion: string;
      readonly delegateUid: string;
      readonly memberNode: string;
    }
  /** `resourceVersion` is that of the delegate, and a precondition. */
  | {
      readonly type: "forward";
      readonly member: string;
      readonly proxyUid: string;
      readonly patch: ForwardPatch;
      readonly resourceVersion: string;
      /** Absent: repeated writes of this kind are not counted. */
      readonly purpose?: Purpose;
    }
  /** `resourceVersion` is that of the proxy. */
  | { readonly type: "status"; readonly patch: StatusPatch; readonly resourceVersion: string }
  /** Tells the author why the pod waits. */
  | (Telling & {
      readonly type: "report";
      readonly proxyUid: string;
      readonly reason: string;
      readonly message: string;
      readonly refusals?: readonly WaitRefusal[];
      /** The proxy is bound, and waits in its member. */
      readonly bound?: true;
    })
  /** Tells the author in an event, such as which members refused a pod that another one has now. */
  | {
      readonly type: "announce";
      readonly proxyUid: string;
      readonly reason: string;
      readonly message: string;
      /** Events with the same key are recorded once in fifty minutes. */
      readonly dedupe?: string;
    }
  /** Deletes the proxy with grace 0, as the kubelet does when a pod's containers are gone. */
  | { readonly type: "deleteProxy"; readonly proxyUid: string }
  /** Deletes the proxy while its delegate is being deleted, so that its controller replaces it at once. */
  | { readonly type: "evict"; readonly proxyUid: string; readonly graceSeconds: number }
  | { readonly type: "removeFinalizer"; readonly proxyUid: string }
  | {
      readonly type: "noteRefusal";
      readonly proxyUid: string;
      readonly refusal: Refusal;
      readonly nodesVersion: number;
      /** Undefined: the refusal holds for no other pod. */
      readonly sharedBy: SharedBy | undefined;
    };
