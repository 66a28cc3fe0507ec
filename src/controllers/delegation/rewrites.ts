import type { Clock } from "../../runtime/clock.ts";

interface Written {
  /** What was written last. */
  readonly wanted: string;
  /** When it was written, again and again; epoch ms. */
  readonly at: readonly number[];
}

// More than anybody changes by hand, and less than a controller.
const MOST_WRITES = 5;
const WITHIN_MS = 60_000;

/** Counts writes that were done for the same as the last one: somebody else undoes them. Keeps those of a minute. */
export class Rewrites {
  readonly #clock: Pick<Clock, "now">;
  /** By what they are about; the latest last. */
  readonly #written = new Map<string, Written>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** How many are kept in mind. */
  get size(): number {
    return this.#written.size;
  }

  /** Something was written; true when that has been undone too often. */
  note(about: string, wanted: string): boolean {
    const now = this.#clock.now();
    for (const [other, { at }] of this.#written) {
      if (now - (at.at(-1) ?? 0) < WITHIN_MS) break;
      this.#written.delete(other);
    }
    const known = this.#written.get(about);
    const before = known?.wanted === wanted ? known.at.filter((time) => now - time < WITHIN_MS) : [];
    const at = [...before, now].slice(-MOST_WRITES);
    this.#written.delete(about);
    this.#written.set(about, { wanted, at });
    return at.length === MOST_WRITES;
  }
}
