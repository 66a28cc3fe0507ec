import type { Clock } from "../runtime/clock.ts";

// A controller manager that answers watches in time has counted a quota anew by then.
const RECENT_MS = 5_000;

/** The namespaces in which delegates have ended a moment ago: quotas there may still count them. */
export class RecentEnds {
  readonly #clock: Pick<Clock, "now">;
  /** When the last one ended, epoch ms; the longest ago first. */
  readonly #endedAt = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#endedAt.size;
  }

  note(namespace: string): void {
    const now = this.#clock.now();
    this.#endedAt.delete(namespace);
    this.#endedAt.set(namespace, now);
    for (const [oldest, endedAt] of this.#endedAt) {
      if (now < endedAt + RECENT_MS) break;
      this.#endedAt.delete(oldest);
    }
  }

  has(namespace: string): boolean {
    const endedAt = this.#endedAt.get(namespace);
    return endedAt !== undefined && this.#clock.now() < endedAt + RECENT_MS;
  }
}
