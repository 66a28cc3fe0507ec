import type { KubeObject, ObjectKey, Stored } from "../api/kubernetes.ts";
import type { ByteBudget } from "../kube/limits.ts";

/** The objects of a list in progress. Charges new objects as they arrive, since a server may send pages without end. */
export class Staging<T extends KubeObject> {
  readonly objects: Map<ObjectKey, Stored<T>> = new Map();
  /** Bytes charged per object. */
  readonly sizes: Map<ObjectKey, number> = new Map();
  readonly #budget: ByteBudget | undefined;
  #held = 0;

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget;
  }

  /** Keeps an object that is stored already. */
  keep(key: ObjectKey, object: Stored<T>, size: number): void {
    this.objects.set(key, object);
    if (this.#budget !== undefined) this.sizes.set(key, size);
  }

  /** Adds an object that replaces one of `replaced` bytes, 0 for none. Returns false when the budget has no room. */
  add(key: ObjectKey, object: Stored<T>, size: number, replaced: number): boolean {
    // A smaller object releases its surplus in `settle`, after which nothing can fail.
    const more = Math.max(0, size - replaced);
    if (this.#budget?.hold(more) === false) return false;
    this.#held += more;
    this.keep(key, object, size);
    return true;
  }

  /** Replaces the charges of the stored objects, `before` bytes in total. Returns the new total in bytes. */
  settle(before: number): number {
    let bytes = 0;
    for (const size of this.sizes.values()) bytes += size;
    this.#budget?.hold(bytes - before - this.#held);
    this.#held = 0;
    return bytes;
  }

  /** Returns unsettled charges to the budget. */
  release(): void {
    this.#budget?.hold(-this.#held);
    this.#held = 0;
  }
}
