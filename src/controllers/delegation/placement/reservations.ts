import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { Amounts } from "../../../api/quantity.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { SharedBy } from "../model/decision.ts";
import type { Memories } from "../model/memory.ts";
import type { Rest } from "../model/refusal-backoff.ts";
import type { PlacementMembers } from "./placement-members.ts";
import { type Shapes, shapeOf } from "./refused-shapes.ts";

/** What a pod is about to take of a member. */
export interface Asked {
  readonly requests: Amounts;
  readonly namespace: string | undefined;
  /** It is to wait there, as there is no room for it. */
  readonly parked?: boolean;
}

/** Facts about a refusal. */
export interface Refused {
  /** The member's that the answer was for. */
  readonly nodesVersion: number;
  /** Absent when nobody knows the pod any more. */
  readonly pod?: Stored<Pod> | undefined;
  /** Which other pods it holds for; absent: for none. */
  readonly sharedBy?: SharedBy | undefined;
  readonly rest?: Rest;
}

/** What reservations are noted in. */
export interface ReservationsOptions {
  readonly registry: Pick<PlacementMembers, "member">;
  readonly memories: Memories;
  readonly shapes: Shapes;
  readonly clock: Pick<Clock, "now">;
}

/**
 * What members are asked for before they show it, from the decision until it is known what came of it: the room, the pod's place
 * in its group and its workload, and which pod tries for others of its shape. A pod has room in one member at a time.
 */
export class Reservations {
  readonly #options: ReservationsOptions;

  constructor(options: ReservationsOptions) {
    this.#options = options;
  }

  /**
   * The pod is about to get its delegate there; `pod` is absent when nobody knows it any more. True when room that was kept for it
   * elsewhere is free.
   */
  attempt(proxyUid: string, member: string, asked: Asked, pod: Stored<Pod> | undefined): boolean {
    const { memories, shapes, clock } = this.#options;
    const freed = this.#releaseKept(proxyUid, member);
    const now = clock.now();
    memories.noteAttempt(proxyUid, member, now, asked.parked);
    // One that will wait asks nobody for a node.
    if (asked.parked !== true && pod !== undefined && !shapes.empty) {
      shapes.attempt(member, shapeOf(pod), proxyUid, now);
    }
    this.#reserve(proxyUid, member, asked);
    return freed;
  }

  /** Room is kept there for the pod, which another member still has. True when room that was kept in a third one is free. */
  promise(proxyUid: string, member: string, asked: Asked): boolean {
    const freed = this.#releaseKept(proxyUid, member);
    this.#options.memories.notePromised(proxyUid, member);
    this.#reserve(proxyUid, member, asked);
    return freed;
  }

  /** The member did not take what was sent: its room is free. False: none was kept. */
  release(proxyUid: string, member: string): boolean {
    return this.#options.registry.member(member)?.load.release(proxyUid) ?? false;
  }

  /** The member is known not to have the pod's delegate: others may have its room, or try for themselves. */
  unmade(proxyUid: string, member: string): void {
    this.#options.memories.noteAbsent(proxyUid);
    this.release(proxyUid, member);
    this.#options.shapes.abandon(proxyUid);
  }

  /** Nothing will soon be known of others by this pod; true when they waited for that. */
  abandon(proxyUid: string): boolean {
    return this.#options.shapes.abandon(proxyUid);
  }

  /**
   * The member does not take the pod, nor those that share the refusal: they need not find out for themselves. True when others waited
   * for an answer that this is not.
   */
  refuse(proxyUid: string, refusal: Refusal, { nodesVersion, pod, sharedBy, rest }: Refused): boolean {
    const { memories, shapes, clock } = this.#options;
    const restMs = memories.noteRefusal(proxyUid, refusal, nodesVersion, clock.now(), rest);
    const awaited = shapes.abandon(proxyUid);
    if (pod === undefined || sharedBy === undefined) return awaited;
    this.refuseAll(pod, refusal, sharedBy, restMs);
    return false;
  }

  /** The member takes no pod like this one, which rests for so long itself. */
  refuseAll(pod: Stored<Pod>, refusal: Refusal, sharedBy: SharedBy, restMs?: number): void {
    const { registry, shapes, clock } = this.#options;
    const member = registry.member(refusal.cluster);
    if (member === undefined) return;
    shapes.refuse(member.name, shapeOf(pod)[sharedBy], refusal, member.roomVersion, clock.now(), restMs);
  }

  /** The pod runs in the member from now on; true when others of its shape, refused there, may try again, or room elsewhere is free. */
  settle(proxyUid: string, member: string, pod: Stored<Pod> | undefined): boolean {
    const { memories, shapes } = this.#options;
    const { room = member } = memories.of(proxyUid);
    // Its scheduler was faster than the withdrawal that a promise was for.
    if (room !== member) this.release(proxyUid, room);
    memories.forget(proxyUid);
    const isNews = pod !== undefined && !shapes.empty && shapes.accept(member, shapeOf(pod));
    return isNews || room !== member;
  }

  /** The pod is gone. True when it had room, maybe without ever getting a delegate, or others waited for what would become of it. */
  end(proxyUid: string): boolean {
    const hadRoom = this.#options.memories.of(proxyUid).room !== undefined;
    this.#releaseKept(proxyUid);
    this.#options.memories.forget(proxyUid);
    return this.#options.shapes.abandon(proxyUid) || hadRoom;
  }

  #reserve(proxyUid: string, member: string, { requests, namespace, parked }: Asked): void {
    this.#options.registry.member(member)?.load.reserve(proxyUid, requests, namespace, parked);
  }

  /** True when what was kept was in another member than `next`, which may count it anew. */
  #releaseKept(proxyUid: string, next?: string): boolean {
    const { room } = this.#options.memories.of(proxyUid);
    return room !== undefined && this.release(proxyUid, room) && room !== next;
  }
}
