/** Fingerprints of what a write wants, by the part that it changes. */
export type Wanted = Readonly<Record<string, string>>;

interface Repeated {
  readonly wanted: Wanted;
  /** Epoch ms. */
  readonly at: readonly number[];
}

// More often than people change an object by hand, and less often than a controller does.
const MOST_REPEATS = 5;
const WITHIN_MS = 60_000;

/** Counts writes that were done for the same purpose within a minute: another manager undoes them. */
export class UndoneWrites<Key extends string = string> {
  /** The object that was written last comes last. */
  readonly #written = new Map<Key, readonly Repeated[]>();

  /** Returns true from the fifth write for the same purpose on. A contradicting write starts the count anew. */
  note(object: Key, wanted: Wanted, now: number): boolean {
    const isRecent = (time: number): boolean => now - time < WITHIN_MS;
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
    const at = [...before, now].slice(-MOST_REPEATS);
    this.#written.delete(object);
    this.#written.set(object, [...others, { wanted, at }]);
    return at.length === MOST_REPEATS;
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
