import type { KubeObject, ObjectKey } from "../api/kubernetes.ts";
import type { ByteBudget } from "../kube/limits.ts";
import type { Staging } from "./staging.ts";

/** What the objects of a store hold of a budget, each and all together; bytes. Without a budget nothing is counted. */
export class Holdings {
  readonly #budget: ByteBudget | undefined;
  #sizes = new Map<ObjectKey, number>();
  #bytes = 0;

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget;
  }

  /** What the object holds; 0: nothing, or there is none. */
  of(key: ObjectKey): number {
    return this.#sizes.get(key) ?? 0;
  }

  /** Takes an object's size to account; 0: it has gone. False when there is no room for it. */
  charge(key: ObjectKey, size: number): boolean {
    if (this.#budget === undefined) return true;
    const more = size - this.of(key);
    if (!this.#budget.hold(more)) return false;
    this.#bytes += more;
    if (size === 0) this.#sizes.delete(key);
    else this.#sizes.set(key, size);
    return true;
  }

  /** What is staged takes the place of all there is. */
  settle<T extends KubeObject>(staging: Staging<T>): void {
    this.#sizes = staging.sizes;
    this.#bytes = staging.settle(this.#bytes);
  }

  /** Gives up all of it, for good. */
  release(): void {
    this.#budget?.hold(-this.#bytes);
    this.#bytes = 0;
  }
}
