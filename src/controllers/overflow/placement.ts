import { defined } from "../../api/defined.ts";
import { objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { DEFAULT_OVERFLOW_AFTER_SECONDS } from "../../api/overflow.ts";
import type { Member } from "../../clusters/member.ts";
import type { Refusal } from "../../placement/candidate.ts";
import { isOverfull } from "../../placement/rank.ts";
import { podRequests } from "../../placement/requests.ts";
import type { FindPod, GroupName } from "../../scheduling/groups.ts";
import { UID_INDEX } from "../../scheduling/known-pods.ts";
import type { PlacementAccess } from "../../scheduling/placement-state.ts";
import type { PlacementView, SharedBy } from "../../scheduling/placement-view.ts";
import type { MadeDelegate } from "../../scheduling/reservations.ts";

/** Gives the overflow controller the delegation controller's placement, for pods that are no proxies yet. */
export class OverflowPlacement {
  readonly #options: PlacementAccess;

  constructor(options: PlacementAccess) {
    this.#options = options;
  }

  optedIn(pod: Stored<Pod>): boolean {
    return this.#options.placementState.podRules.optedIn(pod);
  }

  /** The default where the annotations cannot be read. */
  overflowAfterSeconds(pod: Stored<Pod>): number {
    const parsed = this.#options.placementState.podRules.parse(pod);
    return (parsed.ok ? parsed.placement.overflowAfterSeconds : undefined) ?? DEFAULT_OVERFLOW_AFTER_SECONDS;
  }

  observe(pod: Stored<Pod>, find: FindPod): PlacementView {
    this.#options.placementState.podRules.update(pod, find);
    return this.#options.observe(objectKey(pod.metadata), pod);
  }

  groupOf(pod: Stored<Pod>, find: FindPod): (GroupName & { readonly home?: string }) | undefined {
    const { podRules, groups } = this.#options.placementState;
    const group = podRules.groupOf(pod, find);
    const home = groups.placeOf(pod.metadata.uid)?.home;
    return group === undefined ? undefined : { ...group, ...defined({ home }) };
  }

  delegateIn(pod: Stored<Pod>, member: Pick<Member, "candidate">): Pod {
    return this.#options.placementState.eligibilities.delegateIn(pod, member.candidate(), this.#options.identity);
  }

  /** Reports false when the pod's group may not go to the member now. */
  reserve(pod: Stored<Pod>, member: string, delegate: Pod): boolean {
    const { placementState } = this.#options;
    const { uid, namespace } = pod.metadata;
    if (!placementState.groups.mayEnter(uid, member)) return false;
    placementState.reserve(pod, member, { requests: podRequests(delegate), namespace });
    return true;
  }

  /** Reserves what the member would store. Reports false when that is news, and the member has no room for it. */
  noteStored(pod: Stored<Pod>, member: Pick<Member, "name" | "candidate">, made: MadeDelegate): boolean {
    const { placementState, events } = this.#options;
    if (!placementState.reservations.noteStored(pod.metadata.uid, member.name, pod, made)) return true;
    events.emit("roomFreed");
    return !isOverfull(podRequests(made.stored), member.candidate());
  }

  giveUp(uid: string, member: string): void {
    // The pod was bound, though the response was lost: it is a proxy now.
    if (this.#isProxy(uid)) return;
    this.#options.placementState.giveUp(uid, member);
    this.#options.events.emit("roomFreed");
  }

  refusedBy(pod: Stored<Pod>, refusal: Refusal, sharedBy?: SharedBy): void {
    const { retries } = this.#options.placementState;
    if (sharedBy === undefined) retries.refuse(pod.metadata.uid, refusal, { nodesVersion: 0 });
    else retries.refuseAll(pod, refusal, sharedBy);
  }

  /** Reports whether the member had refused pods like this one. */
  acceptedBy(pod: Stored<Pod>, name: string): boolean {
    return this.#options.placementState.retries.accept(name, pod, "RefusedByMember");
  }

  leave(uid: string): void {
    const { groups, memories } = this.#options.placementState;
    if (this.#isProxy(uid) || memories.of(uid).lastReserved !== undefined) return;
    groups.remove(uid);
    memories.forget(uid);
  }

  #isProxy(uid: string): boolean {
    return this.#options.proxies.countByIndex(UID_INDEX, uid) > 0;
  }
}
