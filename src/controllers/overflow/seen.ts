import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isUnplaced } from "./decide.ts";
import type { Seen } from "./model.ts";

/** When pods in overflow mode were seen to have no place, by their uid. Losing this costs time at most. */
export class Sightings {
  readonly #pods = new Map<string, { otherwiseAt?: number; unplacedAt?: number }>();

  /** The pod is like this now. */
  see(pod: Stored<Pod>, now: number): void {
    const { uid } = pod.metadata;
    const entry = this.#pods.get(uid) ?? {};
    if (!isUnplaced(pod)) this.#pods.set(uid, { otherwiseAt: now });
    else this.#pods.set(uid, { ...entry, unplacedAt: entry.unplacedAt ?? now });
  }

  /** What was seen of it. A time that has still to come is of a clock that was set back. */
  of(uid: string, now: number): Seen {
    const { otherwiseAt, unplacedAt = now } = this.#pods.get(uid) ?? {};
    return {
      unplacedAt: Math.min(unplacedAt, now),
      ...(otherwiseAt === undefined ? {} : { otherwiseAt: Math.min(otherwiseAt, now) }),
    };
  }

  forget(uid: string): void {
    this.#pods.delete(uid);
  }
}
