import { DELEGATION_LABEL } from "../../../api/keys.ts";
import type { ObjectRef, Pod, Stored } from "../../../api/kubernetes.ts";
import type { Amounts } from "../../../api/quantity.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import type { Needs, NeedsState, Preparation } from "../../../placement/needs.ts";
import { podRequests, type RequestMutation } from "../../../placement/requests.ts";
import type { Merged } from "../../../pods/host-admission.ts";
import type { Memory } from "../../../scheduling/memory.ts";
import type { PlaceableMember, PlacementView } from "../../../scheduling/placement-view.ts";

/** A member as a proxy's decision sees it. */
export interface MemberView extends PlaceableMember {
  /** The API server answers, so the stores are current. */
  readonly reachable: boolean;
  /** When it last became reachable; epoch ms. */
  readonly reachableSince: number;
  /** The delegates have been listed since this controller became leader. */
  readonly read: boolean;
  /** A probe or watch failed a moment ago. The member is not lost yet: that, or its recovery, is an event of its own. */
  readonly faltering?: boolean;
  /** Last state of a delegate under that name which the watch saw go. */
  readonly departed?: Stored<Pod>;
  /** How long its scheduler may take before the next member is tried. */
  readonly scheduleTimeoutMs: number;
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
  /** The state of the copies that the pod needs in the member. Absent: it needs none. */
  readonly preparation?: Preparation;
  /** Requests of the pod in the member, where the author's overrides or its admission change them. Only set with a ranking. */
  readonly requests?: Amounts;
  /** The requests that its admission made for the proxy's delegate. Only set where that waits for a node. */
  readonly mutation?: RequestMutation;
  /** With this delegate, as it is stored, the host's pods request more than the member's nodes have. */
  readonly overfull?: boolean;
}

/** Everything that one decision depends on. `recorded` makes it plain data that can be logged and replayed. */
export interface View extends PlacementView {
  readonly ref: ObjectRef;
  readonly proxy: Stored<Pod> | undefined;
  readonly members: readonly MemberView[];
  readonly memory: Memory;
  /** Offset of the machine's wall clock from the monotonic one; ms. Absent: none. */
  readonly wallOffsetMs?: number;
  /** When the proxy came, or was last seen with a scheduling gate; epoch ms. Absent: when it was created. */
  readonly waitingSince?: number;
  /** Parts of the spec that the host's admission merged into it, and that no delegate gets. */
  readonly merged?: Merged;
  /** State of what the pod needs of its namespace, on the host. Absent: nothing, or it was not asked for. */
  readonly needs?: NeedsState;
  /** Facts that phases ask for. Absent: the view has them, or no phase asks. */
  readonly onDemand?: FactsOnDemand;
}

/** The facts that come with a ranking of the members. */
export type RankedFacts = Pick<View, "needs" | "members" | "ranking">;

/** Facts about a pod without a node that are dear to compute: each is computed when first asked for, and once. */
export interface FactsOnDemand {
  needs(): Needs | undefined;
  ranked(): RankedFacts;
  /** Returns what was computed, as plain data. */
  known(): Partial<RankedFacts>;
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
