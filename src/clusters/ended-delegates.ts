import type { ObjectKey, Pod, Stored } from "../api/kubernetes.ts";
import { setUntilEnded } from "../api/latest-entries.ts";
import type { Clock } from "../runtime/clock.ts";

// The next reconcile needs a tombstone; these limits bound the rest.
const KEPT_PODS = 10_000;
const KEPT_BYTES = 64 * 2 ** 20;

/** The last states of deleted delegates. Drops the oldest first. */
export class Tombstones {
  readonly #pods = new Map<ObjectKey, { readonly pod: Stored<Pod>; readonly bytes: number }>();
  #bytes = 0;

  get(key: ObjectKey): Stored<Pod> | undefined {
    return this.#pods.get(key)?.pod;
  }

  keep(key: ObjectKey, pod: Stored<Pod>): void {
    this.forget(key);
    const bytes = JSON.stringify(pod).length;
    this.#pods.set(key, { pod, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#pods.keys()) {
      if (this.#pods.size <= KEPT_PODS && this.#bytes <= KEPT_BYTES) break;
      this.forget(oldest);
    }
  }

  forget(key: ObjectKey): void {
    this.#bytes -= this.#pods.get(key)?.bytes ?? 0;
    this.#pods.delete(key);
  }
}

// The member's quota controller has recounted by then, unless it lags.
const RECENT_MS = 5_000;

/** The namespaces with a recently ended delegate, which a ResourceQuota may still count. */
export class RecentEnds {
  readonly #clock: Pick<Clock, "now">;
  /** Epoch ms; oldest first. */
  readonly #endedAt = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#endedAt.size;
  }

  note(namespace: string): void {
    const now = this.#clock.now();
    setUntilEnded(this.#endedAt, namespace, now, (endedAt) => endedAt + RECENT_MS <= now);
  }

  has(namespace: string): boolean {
    const endedAt = this.#endedAt.get(namespace);
    return endedAt !== undefined && this.#clock.now() < endedAt + RECENT_MS;
  }
}
