import type { ClusterClient } from "../../kube/client.ts";
import { KubeError } from "../../kube/errors.ts";
import type { ByteBudget } from "../../kube/limits.ts";
import type { KubeObject, ObjectKey, Stored } from "../../kube/objects.ts";

interface Budgeted {
  readonly client: ClusterClient;
  readonly resource: { readonly plural: string };
  readonly budget?: ByteBudget;
}

export function overBudget({ client, resource, budget }: Budgeted): KubeError {
  const fields = { code: "BadAnswer", cluster: client.cluster, verb: "list", resource: resource.plural } as const;
  return new KubeError(`it has more than the ${budget?.most} bytes that may be stored of it`, fields);
}

/** Bytes of a shared budget that a store's objects use. Counts nothing without a budget. */
export class StoreCharges {
  readonly #budget: ByteBudget | undefined;
  #sizes = new Map<ObjectKey, number>();
  #bytes = 0;

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget;
  }

  of(key: ObjectKey): number {
    return this.#sizes.get(key) ?? 0;
  }

  /** Charges an object's new size; 0 removes it. Returns false without room. */
  charge(key: ObjectKey, size: number): boolean {
    if (this.#budget === undefined) return true;
    const more = size - this.of(key);
    if (!this.#budget.hold(more)) return false;
    this.#bytes += more;
    if (size === 0) this.#sizes.delete(key);
    else this.#sizes.set(key, size);
    return true;
  }

  commit<T extends KubeObject>(staged: StagedList<T>): void {
    this.#sizes = staged.sizes;
    this.#bytes = staged.commit(this.#bytes);
  }

  /** Returns all charged bytes to the budget, for good. */
  release(): void {
    this.#budget?.hold(-this.#bytes);
    this.#bytes = 0;
  }
}

/** The objects of a list in progress. Charges new objects as they arrive, since a server may send pages without end. */
export class StagedList<T extends KubeObject> {
  readonly objects: Map<ObjectKey, Stored<T>> = new Map();
  readonly sizes: Map<ObjectKey, number> = new Map();
  readonly #budget: ByteBudget | undefined;
  #held = 0;

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget;
  }

  keep(key: ObjectKey, object: Stored<T>, size: number): void {
    this.objects.set(key, object);
    if (this.#budget !== undefined) this.sizes.set(key, size);
  }

  /** `replaced`: bytes of the object before. Returns false without room. */
  add(key: ObjectKey, object: Stored<T>, size: number, replaced: number): boolean {
    // A smaller object releases its surplus in `commit`, after which nothing can fail.
    const more = Math.max(0, size - replaced);
    if (this.#budget?.hold(more) === false) return false;
    this.#held += more;
    this.keep(key, object, size);
    return true;
  }

  /** Returns the new total in bytes. */
  commit(before: number): number {
    let bytes = 0;
    for (const size of this.sizes.values()) bytes += size;
    this.#budget?.hold(bytes - before - this.#held);
    this.#held = 0;
    return bytes;
  }

  release(): void {
    this.#budget?.hold(-this.#held);
    this.#held = 0;
  }
}
