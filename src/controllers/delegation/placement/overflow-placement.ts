import { type Namespace, type ObjectKey, objectKey, type Pod, type Stored } from "../../../api/kubernetes.ts";
import { DEFAULT_OVERFLOW_AFTER_SECONDS } from "../../../api/overflow.ts";
import type { Member } from "../../../clusters/member.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import { podRequests } from "../../../placement/requests.ts";
import type { HostIdentity } from "../../../pods/delegate.ts";
import type { ReadStore } from "../../../runtime/store.ts";
import type { SharedBy } from "../model/decision.ts";
import type { View } from "../model/view.ts";
import type { FindPod, GroupName } from "./groups.ts";
import { UID_INDEX } from "./placement-rules.ts";
import type { PlacementState } from "./placement-state.ts";
import { shapeOf } from "./refused-shapes.ts";

/** What pods in overflow mode are placed by. */
export interface OverflowPlacementOptions {
  readonly placementState: PlacementState;
  readonly identity: HostIdentity;
  readonly namespaces: ReadStore<Namespace>;
  readonly proxies: ReadStore<Pod>;
  /** All that a decision about the pod sees. */
  readonly observe: (key: ObjectKey, pod: Stored<Pod>) => View;
  /** Room that was kept is free again. */
  readonly onRoom: () => void;
}

/** The delegation controller's placement for pods that are no proxies yet: those in overflow mode, until they are bound. */
export class OverflowPlacement {
  readonly #options: OverflowPlacementOptions;

  constructor(options: OverflowPlacementOptions) {
    this.#options = options;
  }

  /** Whether the namespace has a mode of delegation. */
  optedIn(namespace: string): boolean {
    return this.#options.namespaces.get(objectKey({ name: namespace })) !== undefined;
  }

  /** How long the host must have found the pod unschedulable; what cannot be read is said when it is due. */
  overflowAfterSeconds(pod: Stored<Pod>): number {
    const parsed = this.#options.placementState.rules.parse(pod);
    return (parsed.ok ? parsed.placement.overflowAfterSeconds : undefined) ?? DEFAULT_OVERFLOW_AFTER_SECONDS;
  }

  /** What a decision about the pod sees; `find` has pods that are no proxies, of which some own others. */
  observe(pod: Stored<Pod>, find: FindPod): View {
    this.#options.placementState.rules.update(pod, find);
    return this.#options.observe(objectKey(pod.metadata), pod);
  }

  /** The pod's group, and the member that has its pods; undefined when it has none. */
  groupOf(pod: Stored<Pod>, find: FindPod): (GroupName & { readonly home?: string }) | undefined {
    const { rules, groups } = this.#options.placementState;
    const group = rules.groupOf(pod, find);
    const home = groups.placeOf(pod.metadata.uid)?.home;
    return group === undefined ? undefined : { ...group, ...(home === undefined ? {} : { home }) };
  }

  /** The pod's delegate as the member is to have it. */
  delegateIn(pod: Stored<Pod>, member: Pick<Member, "candidate">): Pod {
    return this.#options.placementState.view.delegateIn(pod, member.candidate(), this.#options.identity);
  }

  /** Keeps room in the member for the delegate of a pod that is about to be bound; false when its group may not go there now. */
  reserve(pod: Stored<Pod>, member: string, delegate: Pod): boolean {
    const { placementState } = this.#options;
    const { uid, namespace } = pod.metadata;
    if (!placementState.groups.mayEnter(uid, member)) return false;
    placementState.overflow(pod, member, { requests: podRequests(delegate), namespace });
    return true;
  }

  /** The pod was not bound to the member. */
  giveUp(uid: string, member: string): void {
    // It was, though nobody has answered: from then on it is a proxy like any other.
    if (this.#isProxy(uid)) return;
    this.#options.placementState.giveUp(uid, member);
    this.#options.onRoom();
  }

  /** The member would not take the pod, nor those that share the refusal. */
  refusedBy(pod: Stored<Pod>, refusal: Refusal, sharedBy?: SharedBy): void {
    const { reservations } = this.#options.placementState;
    if (sharedBy === undefined) reservations.refuse(pod.metadata.uid, refusal, { nodesVersion: 0 });
    else reservations.refuseAll(pod, refusal, sharedBy);
  }

  /** The member's API server would take the pod; true when it had refused others of its shape. Its scheduler was not asked. */
  acceptedBy(pod: Stored<Pod>, name: string): boolean {
    const { shapes } = this.#options.placementState;
    return !shapes.empty && shapes.accept(name, shapeOf(pod), "RefusedByMember");
  }

  /** The pod waits for no member any more: it is the host's, a proxy or gone. Its group forgets it, unless it is, or is to be, a proxy. */
  leave(uid: string): void {
    const { groups, memories } = this.#options.placementState;
    if (this.#isProxy(uid) || memories.of(uid).room !== undefined) return;
    groups.remove(uid);
    memories.forget(uid);
  }

  #isProxy(uid: string): boolean {
    return this.#options.proxies.countByIndex(UID_INDEX, uid) > 0;
  }
}
