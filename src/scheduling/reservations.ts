import type { Pod, Stored } from "../api/kubernetes.ts";
import type { Amounts } from "../api/quantity.ts";
import { podRequests } from "../placement/requests.ts";
import { isBound } from "../pods/pod-state.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Memories } from "./memories.ts";
import type { PlacementMembers } from "./pod-rules.ts";
import { type LearntMutation, type RequestMutations, requestMutation } from "./request-mutations.ts";
import type { Retries } from "./retries/retries.ts";

/** The room that a pod asks of a member. */
export interface RoomRequest {
  readonly requests: Amounts;
  readonly namespace: string | undefined;
  readonly parked?: boolean;
}

/** A delegate as it was sent, and as the member's API server answered that it stores it. */
export interface MadeDelegate {
  readonly sent: Pod;
  readonly stored: Pod;
}

export interface ReservationsOptions {
  readonly registry: Pick<PlacementMembers, "member">;
  readonly memories: Memories;
  readonly retries: Retries;
  readonly mutations: RequestMutations;
  readonly clock: Pick<Clock, "now">;
}

/** Reserves what a pod will take until its outcome is known: room, its place in group and workload, the trial of its shape. */
export class Reservations {
  readonly #options: ReservationsOptions;

  constructor(options: ReservationsOptions) {
    this.#options = options;
  }

  /** Reserves room for a delegate that is about to be created. Reports whether room elsewhere became free. */
  attempt(proxyUid: string, member: string, asked: RoomRequest, pod: Stored<Pod> | undefined): boolean {
    const freed = this.#releaseReserved(proxyUid, member);
    this.#options.retries.attempt(proxyUid, member, pod, asked.parked);
    const requests = this.learntIn(member, pod)?.mutation.requests ?? asked.requests;
    this.#take(proxyUid, member, { ...asked, requests });
    return freed;
  }

  /** Returns what the member makes of the requests of pods like this one, as far as is known. */
  learntIn(member: string, pod: Stored<Pod> | undefined): LearntMutation | undefined {
    return pod && this.#options.mutations.of(pod, this.#options.clock.now())?.(member);
  }

  /** Reserves what the member stored in place of what was sent. Reports whether waiting pods are to be judged anew. */
  noteStored(proxyUid: string, member: string, pod: Stored<Pod> | undefined, made: MadeDelegate): boolean {
    const { registry, mutations, clock } = this.#options;
    const freed = registry.member(member)?.requests.correct(proxyUid, podRequests(made.stored)) ?? false;
    const mutation = requestMutation(made.sent, made.stored);
    return (pod !== undefined && mutations.learn(member, pod, mutation, clock.now())) || freed;
  }

  /** Reserves room in a member while another one still has the pod. Reports whether room in a third one became free. */
  reserve(proxyUid: string, member: string, asked: RoomRequest): boolean {
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
    this.#options.retries.abandon(proxyUid);
  }

  /** The proxy is bound, whether the host shows it or not. Reports whether other pods may try again. */
  noteBound(proxyUid: string, member: string, pod: Stored<Pod> | undefined): boolean {
    const { memories, retries } = this.#options;
    const { lastReserved = member } = memories.of(proxyUid);
    // The scheduler was faster than the withdrawal that the reservation was for.
    if (lastReserved !== member) this.release(proxyUid, lastReserved);
    if (pod?.metadata.uid === proxyUid && !isBound(pod)) memories.noteDone(proxyUid, "binding");
    else memories.forget(proxyUid);
    const isNews = pod !== undefined && retries.accept(member, pod);
    return isNews || lastReserved !== member;
  }

  /** Reports whether room became free or other pods waited for the pod's trial. */
  end(proxyUid: string): boolean {
    const hadRoom = this.#options.memories.of(proxyUid).lastReserved !== undefined;
    this.#releaseReserved(proxyUid);
    this.#options.memories.forget(proxyUid);
    return this.#options.retries.abandon(proxyUid) || hadRoom;
  }

  #take(proxyUid: string, member: string, { requests, namespace, parked }: RoomRequest): void {
    this.#options.registry.member(member)?.requests.reserve(proxyUid, requests, namespace, parked);
  }

  /** Reports whether the released room was in another member than `next`. */
  #releaseReserved(proxyUid: string, next?: string): boolean {
    const { lastReserved } = this.#options.memories.of(proxyUid);
    return lastReserved !== undefined && this.release(proxyUid, lastReserved) && lastReserved !== next;
  }
}
