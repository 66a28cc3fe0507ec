import type { KubeObject, ObjectKey } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { KubeError } from "../kube/errors.ts";
import { heapBytesOf } from "../kube/json.ts";
import type { ByteBudget } from "../kube/limits.ts";
import type { Staging } from "./staging.ts";

interface Budgeted {
  readonly client: ClusterClient;
  readonly resource: { readonly plural: string };
  readonly budget?: ByteBudget;
}

/** Returns the heap bytes of a shrunken object, for a reflector's `sizeOf`. */
export function sizeAsKept(object: object): number {
  return heapBytesOf(JSON.stringify(object));
}

/** The error for a list or a watch that would store more than the budget. */
export function overBudget({ client, resource, budget }: Budgeted): KubeError {
  const fields = { code: "BadAnswer", cluster: client.cluster, verb: "list", resource: resource.plural } as const;
  return new KubeError(`it has more than the ${budget?.most} bytes that may be stored of it`, fields);
}

/** Bytes of a shared budget that a store's objects use, per object and in total. Counts nothing without a budget. */
export class Holdings {
  readonly #budget: ByteBudget | undefined;
  #sizes = new Map<ObjectKey, number>();
  #bytes = 0;

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget;
  }

  /** Returns the bytes charged for the object; 0 when there are none. */
  of(key: ObjectKey): number {
    return this.#sizes.get(key) ?? 0;
  }

  /** Charges an object's new size; 0 removes it. Returns false when the budget has no room. */
  charge(key: ObjectKey, size: number): boolean {
    if (this.#budget === undefined) return true;
    const more = size - this.of(key);
    if (!this.#budget.hold(more)) return false;
    this.#bytes += more;
    if (size === 0) this.#sizes.delete(key);
    else this.#sizes.set(key, size);
    return true;
  }

  /** Replaces all charges with those of `staging`. */
  settle<T extends KubeObject>(staging: Staging<T>): void {
    this.#sizes = staging.sizes;
    this.#bytes = staging.settle(this.#bytes);
  }

  /** Returns all charged bytes to the budget, for good. */
  release(): void {
    this.#budget?.hold(-this.#bytes);
    this.#bytes = 0;
  }
}
