import type { Events } from "../runtime/event-bus.ts";

/** Events after which the waiting pods are decided on again. */
export interface SchedulingEvents {
  /** Room that was reserved is free, or a member takes pods again that it refused. */
  readonly roomFreed: [];
  /** A proxy got or lost its place: an even spread or a limit may admit another. */
  readonly placesChanged: [];
  /** A group of pods is in another member, or in none any more. */
  readonly groupMoved: [];
}

export type SchedulingEmitter = Pick<Events<SchedulingEvents>, "emit">;
