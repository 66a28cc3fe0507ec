import type { ObjectKey, Pod, Stored } from "../api/kubernetes.ts";

// They are needed once, by the reconcile that follows; the rest are bounded.
const KEPT_PODS = 10_000;
const KEPT_BYTES = 64 * 2 ** 20;

/** The last states of delegates that were seen to go; the oldest are forgotten first. */
export class Departed {
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
