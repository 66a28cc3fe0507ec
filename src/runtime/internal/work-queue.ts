/** Keys that were enqueued together with low priority. */
export interface Batch {
  left: number;
  /** Milliseconds that the reconciled keys kept the process busy. */
  busyMs: number;
  /** Called once every key of the batch was reconciled. */
  readonly done: (busyMs: number) => void;
}

export interface Taken<Key> {
  readonly key: Key;
  /** When the key was enqueued; epoch ms. */
  readonly since: number;
  readonly batch?: Batch;
}

/** A work queue of unique keys: first in, first out, with low-priority batches behind. */
export class WorkQueue<Key> {
  readonly #first = new Map<Key, number>();
  readonly #behind = new Map<Key, { readonly since: number; readonly batch: Batch }>();

  get size(): number {
    return this.#first.size + this.#behind.size;
  }

  /** Returns false when the key was queued already. */
  add(key: Key, since: number): boolean {
    if (this.#first.has(key)) return false;
    const behind = this.#behind.get(key);
    this.#first.set(key, since);
    if (behind === undefined) return true;
    this.#behind.delete(key);
    countDone(behind.batch);
    return false;
  }

  /** Returns false when the key was queued already. */
  addBehind(key: Key, since: number, batch: Batch): boolean {
    if (this.#first.has(key) || this.#behind.has(key)) return false;
    this.#behind.set(key, { since, batch });
    batch.left += 1;
    return true;
  }

  /** Takes the next key. With `behind`, takes a low-priority one first if there is any. */
  next(behind: boolean): Taken<Key> | undefined {
    for (const [key, since] of behind && this.#behind.size > 0 ? [] : this.#first) {
      this.#first.delete(key);
      return { key, since };
    }
    for (const [key, { since, batch }] of this.#behind) {
      this.#behind.delete(key);
      return { key, since, batch };
    }
    return undefined;
  }

  clear(): void {
    this.#first.clear();
    this.#behind.clear();
  }
}

/** Counts one key of the batch as reconciled, or as promoted ahead of it. */
export function countDone(batch: Batch, busyMs = 0): void {
  batch.left -= 1;
  batch.busyMs += busyMs;
  if (batch.left === 0) batch.done(batch.busyMs);
}
