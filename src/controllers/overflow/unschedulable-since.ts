import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isUnplaced } from "./decide.ts";
import type { Seen } from "./model.ts";

/** Times since which pods in overflow mode are unschedulable, by uid. Losing it delays their delegation at most. */
export class UnschedulableSince {
  readonly #pods = new Map<string, { otherwiseAt?: number; unplacedAt?: number }>();

  note(pod: Stored<Pod>, now: number): void {
    const { uid } = pod.metadata;
    const entry = this.#pods.get(uid) ?? {};
    if (!isUnplaced(pod)) this.#pods.set(uid, { otherwiseAt: now });
    else this.#pods.set(uid, { ...entry, unplacedAt: entry.unplacedAt ?? now });
  }

  /** A clock that was set back leaves times in the future: they count as now. */
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
