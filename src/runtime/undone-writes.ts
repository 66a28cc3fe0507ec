/** Fingerprints of what a write wants, by the part that it changes. */
export type Wanted = Readonly<Record<string, string>>;

interface Repeated {
  readonly wanted: Wanted;
  /** Epoch ms. */
  readonly at: readonly number[];
}

/** How many writes for one purpose within some time count as undone by another manager. */
export interface UndoneLimit {
  readonly most: number;
  readonly withinMs: number;
}

/** Counts writes that were done for the same purpose within some time: another manager undoes them. */
export class UndoneWrites<Key extends string = string> {
  readonly #limit: UndoneLimit;
  /** The object that was written last comes last. */
  readonly #written = new Map<Key, readonly Repeated[]>();

  constructor(limit: UndoneLimit) {
    this.#limit = limit;
  }

  /** Returns true from as many writes for the same purpose on as the limit says. A contradicting write starts the count anew. */
  note(object: Key, wanted: Wanted, now: number): boolean {
    const { most, withinMs } = this.#limit;
    const isRecent = (time: number): boolean => now - time < withinMs;
    for (const [other, writes] of this.#written) {
      if (writes.some(({ at }) => at.some(isRecent))) break;
      this.#written.delete(other);
    }
    let before: readonly number[] = [];
    const others: Repeated[] = [];
    for (const write of this.#written.get(object) ?? []) {
      const at = write.at.filter(isRecent);
      if (at.length === 0 || contradicts(write.wanted, wanted)) continue;
      if (hasSameParts(write.wanted, wanted)) before = at;
      else others.push({ ...write, at });
    }
    const at = [...before, now].slice(-most);
    this.#written.delete(object);
    this.#written.set(object, [...others, { wanted, at }]);
    return at.length === most;
  }

  /** Returns how many recent writes had this purpose, up to the limit. */
  count(object: Key, wanted: Wanted, now: number): number {
    const found = this.#written.get(object)?.find((write) => hasSameParts(write.wanted, wanted));
    if (found === undefined || contradicts(found.wanted, wanted)) return 0;
    return found.at.filter((time) => now - time < this.#limit.withinMs).length;
  }

  objects(): IterableIterator<Key> {
    return this.#written.keys();
  }

  forget(object: Key): void {
    this.#written.delete(object);
  }
}

function contradicts(a: Wanted, b: Wanted): boolean {
  return Object.entries(a).some(([part, value]) => Object.hasOwn(b, part) && b[part] !== value);
}

function hasSameParts(a: Wanted, b: Wanted): boolean {
  const parts = Object.keys(a);
  return parts.length === Object.keys(b).length && parts.every((part) => Object.hasOwn(b, part));
}
