import type { Pod, Stored } from "../api/kubernetes.ts";
import type { Amounts } from "../api/quantity.ts";
import type { Refusal } from "../placement/candidate.ts";
import { podRequests } from "../placement/requests.ts";
import { isBound } from "../pods/pod-state.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Memories } from "./memories.ts";
import type { SharedBy } from "./placement-view.ts";
import type { PlacementMembers } from "./pod-rules.ts";
import { shapeOf } from "./pod-shapes.ts";
import type { BackoffGrowth } from "./refusal-backoff.ts";
import type { RefusedShapes } from "./refused-shapes.ts";
import { type LearntMutation, type RequestMutations, requestMutation } from "./request-mutations.ts";

/** The room that a pod asks of a member. */
export interface Asked {
  readonly requests: Amounts;
  readonly namespace: string | undefined;
  readonly parked?: boolean;
}

/** The circumstances of a member's refusal, which decide how long and for which pods it holds. */
export interface Refused {
  readonly nodesVersion: number;
  readonly pod?: Stored<Pod> | undefined;
  readonly sharedBy?: SharedBy | undefined;
  readonly growth?: BackoffGrowth;
}

/** A delegate as it was sent, and as the member's API server answered that it stores it. */
export interface Made {
  readonly sent: Pod;
  readonly stored: Pod;
}

export interface ReservationsOptions {
  readonly registry: Pick<PlacementMembers, "member">;
  readonly memories: Memories;
  readonly shapes: RefusedShapes;
  readonly mutations: RequestMutations;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Reserves what a pod will take, until its outcome is known: room, its place in group and workload, the trial of its
 * shape.
 */
export class Reservations {
  readonly #options: ReservationsOptions;

  constructor(options: ReservationsOptions) {
    this.#options = options;
  }

  /** Reserves room for a delegate that is about to be created. Reports whether room elsewhere became free. */
  attempt(proxyUid: string, member: string, asked: Asked, pod: Stored<Pod> | undefined): boolean {
    const { memories, shapes, clock } = this.#options;
    const freed = this.#releaseReserved(proxyUid, member);
    const now = clock.now();
    memories.noteAttempt(proxyUid, member, now, asked.parked);
    // A parked pod is no trial: it does not ask for a node now.
    if (asked.parked !== true && pod !== undefined && !shapes.empty) {
      shapes.attempt(member, shapeOf(pod), proxyUid, now);
    }
    const requests = this.learntIn(member, pod)?.mutation.requests ?? asked.requests;
    this.#take(proxyUid, member, { ...asked, requests });
    return freed;
  }

  /** Returns what the member makes of the requests of pods like this one, as far as is known. */
  learntIn(member: string, pod: Stored<Pod> | undefined): LearntMutation | undefined {
    return pod && this.#options.mutations.of(pod, this.#options.clock.now())?.(member);
  }

  /** Reserves what the member stored in place of what was sent. Reports whether waiting pods are to be judged anew. */
  noteStored(proxyUid: string, member: string, pod: Stored<Pod> | undefined, made: Made): boolean {
    const { registry, mutations, clock } = this.#options;
    const freed = registry.member(member)?.requests.correct(proxyUid, podRequests(made.stored)) ?? false;
    const mutation = requestMutation(made.sent, made.stored);
    return (pod !== undefined && mutations.learn(member, pod, mutation, clock.now())) || freed;
  }

  /** Reserves room in a member while another one still has the pod. Reports whether room in a third one became free. */
  reserve(proxyUid: string, member: string, asked: Asked): boolean {
    const freed = this.#releaseReserved(proxyUid, member);
    this.#options.memories.noteReserved(proxyUid, member);
    this.#take(proxyUid, member, asked);
    return freed;
  }

  /** Reports whether there was any room to release. */
  release(proxyUid: string, member: string): boolean {
    return this.#options.registry.member(member)?.requests.release(proxyUid) ?? false;
  }

  unmade(proxyUid: string, member: string): void {
    this.#options.memories.noteAbsent(proxyUid);
    this.release(proxyUid, member);
    this.#options.shapes.abandon(proxyUid);
  }

  /** Ends the pod's trial for its shape. Reports whether other pods waited for it. */
  abandon(proxyUid: string): boolean {
    return this.#options.shapes.abandon(proxyUid);
  }

  /** Notes that a member does not take the pod. Reports whether other pods waited for an answer that this is not. */
  refuse(proxyUid: string, refusal: Refusal, { nodesVersion, pod, sharedBy, growth }: Refused): boolean {
    const { memories, shapes, clock } = this.#options;
    const restMs = memories.noteRefusal(proxyUid, refusal, nodesVersion, clock.now(), growth);
    const awaited = shapes.abandon(proxyUid);
    if (pod === undefined || sharedBy === undefined) return awaited;
    this.refuseAll(pod, refusal, sharedBy, restMs);
    return false;
  }

  refuseAll(pod: Stored<Pod>, refusal: Refusal, sharedBy: SharedBy, restMs?: number): void {
    const { registry, shapes, clock } = this.#options;
    const member = registry.member(refusal.cluster);
    if (member === undefined) return;
    shapes.refuse(member.name, shapeOf(pod)[sharedBy], refusal, member.roomVersion, clock.now(), restMs);
  }

  /** The proxy is bound, whether the host shows it or not. Reports whether other pods may try again. */
  noteBound(proxyUid: string, member: string, pod: Stored<Pod> | undefined): boolean {
    const { memories, shapes } = this.#options;
    const { lastReserved = member } = memories.of(proxyUid);
    // The scheduler was faster than the withdrawal that the reservation was for.
    if (lastReserved !== member) this.release(proxyUid, lastReserved);
    if (pod?.metadata.uid === proxyUid && !isBound(pod)) memories.noteDone(proxyUid, "binding");
    else memories.forget(proxyUid);
    const isNews = pod !== undefined && !shapes.empty && shapes.accept(member, shapeOf(pod));
    return isNews || lastReserved !== member;
  }

  /** Reports whether room became free or other pods waited for the pod's trial. */
  end(proxyUid: string): boolean {
    const hadRoom = this.#options.memories.of(proxyUid).lastReserved !== undefined;
    this.#releaseReserved(proxyUid);
    this.#options.memories.forget(proxyUid);
    return this.#options.shapes.abandon(proxyUid) || hadRoom;
  }

  #take(proxyUid: string, member: string, { requests, namespace, parked }: Asked): void {
    this.#options.registry.member(member)?.requests.reserve(proxyUid, requests, namespace, parked);
  }

  /** Reports whether the released room was in another member than `next`. */
  #releaseReserved(proxyUid: string, next?: string): boolean {
    const { lastReserved } = this.#options.memories.of(proxyUid);
    return lastReserved !== undefined && this.release(proxyUid, lastReserved) && lastReserved !== next;
  }
}
