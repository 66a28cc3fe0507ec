import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { Refusal, RefusalReason } from "../../placement/candidate.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Memories } from "../memories.ts";
import type { Pause, SharedBy } from "../placement-view.ts";
import type { PlacementMembers } from "../pod-rules.ts";
import { shapeOf } from "../pod-shapes.ts";
import type { BackoffGrowth } from "./backoff.ts";
import { ShapeRefusals } from "./shape-refusals.ts";

/** The circumstances of a member's refusal, which decide how long and for which pods it holds. */
export interface RefusalCircumstances {
  readonly nodesVersion: number;
  readonly pod?: Stored<Pod> | undefined;
  readonly sharedBy?: SharedBy | undefined;
  readonly growth?: BackoffGrowth;
}

export interface RetriesOptions {
  readonly registry: Pick<PlacementMembers, "member">;
  readonly memories: Memories;
  readonly clock: Pick<Clock, "now">;
}

/** Keeps what members refused, of each pod and of each shape of pods, and until when. Decisions ask by `pause.ts`. */
export class Retries {
  readonly #options: RetriesOptions;
  readonly #shapes = new ShapeRefusals();

  constructor(options: RetriesOptions) {
    this.#options = options;
  }

  /** Returns, by member, why pods like this one are not tried in it now. Undefined when no member refuses any pod. */
  ofOthers(pod: Stored<Pod>): ((member: string) => Pause | undefined) | undefined {
    if (this.#shapes.empty) return undefined;
    const shape = shapeOf(pod);
    const now = this.#options.clock.now();
    return (name) => {
      const version = this.#options.registry.member(name)?.roomVersion ?? "";
      return this.#shapes.pause(name, shape, pod.metadata.uid, version, now);
    };
  }

  /** The pod is tried in the member, for all of its shape. A parked pod is no trial: it does not ask for a node now. */
  attempt(uid: string, member: string, pod: Stored<Pod> | undefined, parked = false): void {
    const { memories, clock } = this.#options;
    const now = clock.now();
    memories.noteAttempt(uid, member, now, parked);
    if (!parked && pod !== undefined && !this.#shapes.empty) this.#shapes.attempt(member, shapeOf(pod), uid, now);
  }

  /** Notes that a member does not take the pod. Reports whether other pods waited for an answer that this is not. */
  refuse(uid: string, refusal: Refusal, { nodesVersion, pod, sharedBy, growth }: RefusalCircumstances): boolean {
    const { memories, clock } = this.#options;
    const restMs = memories.noteRefusal(uid, refusal, nodesVersion, clock.now(), growth);
    const awaited = this.#shapes.abandon(uid);
    if (pod === undefined || sharedBy === undefined) return awaited;
    this.refuseAll(pod, refusal, sharedBy, restMs);
    return false;
  }

  refuseAll(pod: Stored<Pod>, refusal: Refusal, sharedBy: SharedBy, restMs?: number): void {
    const { registry, clock } = this.#options;
    const member = registry.member(refusal.cluster);
    if (member === undefined) return;
    this.#shapes.refuse(member.name, shapeOf(pod)[sharedBy], refusal, member.roomVersion, clock.now(), restMs);
  }

  /** Notes that the member takes such pods. Reports whether it had refused some. `only`: other reasons stay. */
  accept(member: string, pod: Stored<Pod>, only?: RefusalReason): boolean {
    return !this.#shapes.empty && this.#shapes.accept(member, shapeOf(pod), only);
  }

  /** Room may have become free in the member that refused the pod: it is tried now. */
  hurry(uid: string, member: string): void {
    this.#options.memories.noteOpen(uid, member, this.#options.clock.now());
  }

  /** Ends the pod's trial for its shape. Reports whether other pods waited for it. */
  abandon(uid: string): boolean {
    return this.#shapes.abandon(uid);
  }
}
