import type { Clock } from "../runtime/clock.ts";

// A controller manager that answers watches in time has counted a quota anew by then.
const RECENT_MS = 5_000;
// Namespaces that are remembered. What is forgotten of one looks like news: a pod that waits there is tried once more.
const KEPT = 1000;

/** The namespaces in which delegates have ended: quotas there may have room since, or still count what ended a moment ago. */
export class RecentEnds {
  readonly #clock: Pick<Clock, "now">;
  /** The last one of each, `at` in epoch ms; the longest ago first. */
  readonly #last = new Map<string, { readonly at: number; readonly count: number }>();
  /** Of all namespaces, so that none that was forgotten comes to a count that it had before. */
  #count = 0;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#last.size;
  }

  note(namespace: string): void {
    this.#count += 1;
    this.#last.delete(namespace);
    this.#last.set(namespace, { at: this.#clock.now(), count: this.#count });
    for (const oldest of this.#last.keys()) {
      if (this.#last.size <= KEPT) break;
      this.#last.delete(oldest);
    }
  }

  /** Whether one has ended there a moment ago. */
  has(namespace: string): boolean {
    const last = this.#last.get(namespace);
    return last !== undefined && this.#clock.now() < last.at + RECENT_MS;
  }

  /** Changes whenever one ends there. */
  version(namespace: string): number {
    return this.#last.get(namespace)?.count ?? 0;
  }
}
