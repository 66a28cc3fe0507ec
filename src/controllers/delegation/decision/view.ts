import { DELEGATION_LABEL } from "../../../api/keys.ts";
import type { ObjectRef, Pod, Stored } from "../../../api/kubernetes.ts";
import type { Amounts } from "../../../api/quantity.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import type { Ranking } from "../../../placement/rank.ts";
import { podRequests, type RequestMutation } from "../../../placement/requests.ts";
import type { Merged } from "../../../pods/host-admission.ts";
import type { Memory } from "./memory.ts";
import type { NeedsState, Preparation } from "./needs.ts";

/** A member's refusal of another pod of the same shape. */
export interface ShapeRefusal {
  readonly refusal: Refusal;
  /** When one of the pods is tried again; epoch ms. */
  readonly until: number;
}

/** A member as a proxy's decision sees it. */
export interface MemberView {
  readonly name: string;
  /** The API server answers, so the stores are current. */
  readonly reachable: boolean;
  /** When it last became reachable; epoch ms. */
  readonly reachableSince: number;
  /** The delegates have been listed since this controller became leader. */
  readonly read: boolean;
  /** A probe or watch failed a moment ago. The member is not lost yet: that, or its recovery, is an event of its own. */
  readonly faltering?: boolean;
  /** The pod under the proxy's name that this host made there, whichever proxy uid it was made for. */
  readonly delegate?: Stored<Pod>;
  /** Last state of a delegate under that name which the watch saw go. */
  readonly departed?: Stored<Pod>;
  /** How long its scheduler may take before the next member is tried. */
  readonly scheduleTimeoutMs: number;
  /** Counts the changes of its nodes that matter to placement. */
  readonly nodesVersion: number;
  readonly removed?: boolean;
  readonly lacksNode?: boolean;
  /** The virtual node is not Ready. Only set while the member cannot be read. */
  readonly notReady?: boolean;
  /** An operator declared its virtual node out of service. Only set while the member cannot be read. */
  readonly outOfService?: boolean;
  /** Why the member never had the pod. Only set where it may hold an unseen delegate. */
  readonly excluded?: string;
  /** How the pod reaches the host's API server from there is not known yet. Only set where its create is uncertain. */
  readonly apiPending?: boolean;
  /** The author's overrides do not fit the member. Only set where a bound proxy may get another delegate. */
  readonly misfit?: string;
  /** A cordon or taint that keeps pods off its virtual node. Only set where an unbound proxy has its delegate. */
  readonly repels?: Pick<Refusal, "reason" | "message">;
  readonly overdue?: boolean;
  /** The state of the copies that the pod needs there. Absent: it needs none. */
  readonly preparation?: Preparation;
  /** Requests of the pod there, where the author's overrides or its admission change them. Only set with a ranking. */
  readonly requests?: Amounts;
  /** When it is forgotten what its admission makes of such pods; epoch ms. Only set with a ranking. */
  readonly learntUntil?: number;
  /** The requests that its admission made for the proxy's delegate. Only set where that waits for a node. */
  readonly mutation?: RequestMutation;
  /** With this delegate, as it is stored, the host's pods request more there than its nodes have. */
  readonly overfull?: boolean;
  /** Refusal of a pod like this one a moment ago. Only set with a ranking. */
  readonly refusedBefore?: ShapeRefusal;
}

/** Everything that one decision depends on, as plain data that can be logged and replayed. */
export interface View {
  readonly ref: ObjectRef;
  readonly proxy: Stored<Pod> | undefined;
  readonly members: readonly MemberView[];
  readonly memory: Memory;
  /** Offset of the machine's wall clock from the monotonic one; ms. Absent: none. */
  readonly wallOffsetMs?: number;
  /** False: the pod's namespace is not opted in, as far as is known. Absent: it is. */
  readonly optedIn?: boolean;
  /** The pod's workload, as `Deployment/web`, while its wishes are not known. An event tells when they are. */
  readonly unseen?: string;
  /** Why the placement annotations cannot be read: a namespace's defaults changed since admission. */
  readonly invalid?: string;
  /** When the proxy came, or was last seen with a scheduling gate; epoch ms. Absent: when it was created. */
  readonly waitingSince?: number;
  /** A member that the division of the workload counts on is still being read; an event tells when it has been. */
  readonly syncing?: boolean;
  /** Another pod of the group is being placed first; an event tells when this one may follow. */
  readonly follows?: boolean;
  readonly named?: readonly string[];
  /** Parts of the spec that the host's admission merged into it, and that no delegate gets. */
  readonly merged?: Merged;
  /** State of what the pod needs of its namespace, on the host. Absent: nothing, or it does not matter now. */
  readonly needs?: NeedsState;
  /** The members for this pod, best first. Absent: another phase decides, or it is not known yet. */
  readonly ranking?: Ranking;
}

export type PodView = View & { readonly proxy: Stored<Pod> };

export function hasProxy(view: View): view is PodView {
  return view.proxy !== undefined;
}

/** Returns the machine's wall time; epoch ms. */
export function wallTime({ wallOffsetMs = 0 }: Pick<View, "wallOffsetMs">, now: number): number {
  return now + wallOffsetMs;
}

export function requestsIn({ proxy, members }: PodView, member: string): Amounts {
  return members.find(({ name }) => name === member)?.requests ?? podRequests(proxy);
}

/** Returns why the member to which the proxy is bound does not take its delegate; undefined if it has not refused it. */
export function refusalOfOwnMember({ name, misfit }: MemberView, { memory }: PodView): string | undefined {
  return misfit ?? memory.attempts[name]?.refusal?.message;
}

/** Returns why the author's and the operator's wishes for the pod are not known; undefined when they are. */
export function unknownPlacement({
  ref,
  invalid,
  optedIn,
  unseen,
}: Pick<View, "ref" | "invalid" | "optedIn" | "unseen">):
  | { readonly reason: string; readonly message: string }
  | undefined {
  if (invalid !== undefined) return { reason: "InvalidPlacement", message: invalid };
  if (unseen !== undefined) {
    const message = `${unseen}, whose annotations say where the pod goes, has not been read yet`;
    return { reason: "WorkloadUnread", message };
  }
  if (optedIn !== false) return undefined;
  const message =
    `namespace ${ref.namespace} has no label ${DELEGATION_LABEL} any more, by which its pods are delegated; ` +
    "write it again, or delete the pod";
  return { reason: "NotOptedIn", message };
}
