/** Fingerprints of what is wanted, by what is changed. */
export type Wanted = Readonly<Record<string, string>>;

interface Written {
  readonly wanted: Wanted;
  /** When it was written, again and again; epoch ms. */
  readonly at: readonly number[];
}

// More than anybody changes by hand, and less than a controller.
const MOST_WRITES = 5;
const WITHIN_MS = 60_000;

/** Counts writes that were done for the same as earlier ones: somebody else undoes them. Keeps those of a minute. */
export class Rewrites {
  /** By the object that they are of; the one that was written last comes last. */
  readonly #written = new Map<string, readonly Written[]>();

  /**
   * Something was written; true when that has been undone too often. A write that wants anything of it otherwise is no undoing: the count
   * begins anew.
   */
  note(object: string, wanted: Wanted, now: number): boolean {
    const lately = (time: number): boolean => now - time < WITHIN_MS;
    for (const [other, writes] of this.#written) {
      if (writes.some(({ at }) => at.some(lately))) break;
      this.#written.delete(other);
    }
    let before: readonly number[] = [];
    const others: Written[] = [];
    for (const write of this.#written.get(object) ?? []) {
      const at = write.at.filter(lately);
      if (at.length === 0 || contradicts(write.wanted, wanted)) continue;
      if (isSame(write.wanted, wanted)) before = at;
      else others.push({ ...write, at });
    }
    const at = [...before, now].slice(-MOST_WRITES);
    this.#written.delete(object);
    this.#written.set(object, [...others, { wanted, at }]);
    return at.length === MOST_WRITES;
  }

  /** What was written of it counts no more. */
  forget(object: string): void {
    this.#written.delete(object);
  }
}

function contradicts(a: Wanted, b: Wanted): boolean {
  return Object.entries(a).some(([part, value]) => Object.hasOwn(b, part) && b[part] !== value);
}

/** Of two that do not contradict each other. */
function isSame(a: Wanted, b: Wanted): boolean {
  const parts = Object.keys(a);
  return parts.length === Object.keys(b).length && parts.every((part) => Object.hasOwn(b, part));
}
