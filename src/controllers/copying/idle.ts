import type { Clock } from "../../runtime/clock.ts";

/** How long a copy stays that nobody uses: pods that follow each other share it, though none of them is there for a moment between two. */
export const LINGERS_MS = 10_000;

/** Since when nobody uses what is under a key, as far as this controller knows. */
export class IdleTimes<Key extends string> {
  readonly #clock: Pick<Clock, "now">;
  readonly #since = new Map<Key, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Takes note of whether it is used now. Returns since when it is not, or now; epoch ms. */
  note(key: Key, used: boolean): number {
    const now = this.#clock.now();
    if (used) {
      this.#since.delete(key);
      return now;
    }
    const since = this.#since.get(key) ?? now;
    this.#since.set(key, since);
    return since;
  }

  forget(key: Key): void {
    this.#since.delete(key);
  }
}
