import type { KubeObject, ObjectKey, Stored } from "../api/kubernetes.ts";
import type { ByteBudget } from "../kube/limits.ts";

/** What a list has brought so far. New objects are charged as they come: a server may send page after page. */
export class Staging<T extends KubeObject> {
  readonly objects: Map<ObjectKey, Stored<T>> = new Map();
  /** What each object holds of the budget. */
  readonly sizes: Map<ObjectKey, number> = new Map();
  readonly #budget: ByteBudget | undefined;
  #held = 0;

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget;
  }

  /** An object that is stored already. */
  keep(key: ObjectKey, object: Stored<T>, size: number): void {
    this.objects.set(key, object);
    if (this.#budget !== undefined) this.sizes.set(key, size);
  }

  /** An object that takes the place of one of that size, 0 for none; false when there is no room for it. */
  add(key: ObjectKey, object: Stored<T>, size: number, replaced: number): boolean {
    // What it takes less is given up when nothing can fail any more.
    const more = Math.max(0, size - replaced);
    if (this.#budget?.hold(more) === false) return false;
    this.#held += more;
    this.keep(key, object, size);
    return true;
  }

  /** What is stored, and held `before`, gives way; returns what is held from now on. */
  settle(before: number): number {
    let bytes = 0;
    for (const size of this.sizes.values()) bytes += size;
    this.#budget?.hold(bytes - before - this.#held);
    this.#held = 0;
    return bytes;
  }

  /** Gives up what is not settled. */
  release(): void {
    this.#budget?.hold(-this.#held);
    this.#held = 0;
  }
}
