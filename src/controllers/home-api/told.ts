import type { Clock } from "../../runtime/clock.ts";

// As long as an API server keeps events: what is said once is there to be read.
const TOLD_FOR_MS = 60 * 60_000;

/** The pods of which namespaces in which members were told lately that they have no token. */
export class Told {
  readonly #clock: Pick<Clock, "now">;
  /** When, by `member/namespace`; the oldest first. */
  readonly #at = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** How many are kept in mind. */
  get size(): number {
    return this.#at.size;
  }

  lately(member: string, namespace: string): boolean {
    const at = this.#at.get(`${member}/${namespace}`);
    return at !== undefined && !this.#isOver(at);
  }

  note(member: string, namespace: string): void {
    for (const [scope, at] of this.#at) {
      if (!this.#isOver(at)) break;
      this.#at.delete(scope);
    }
    this.#at.set(`${member}/${namespace}`, this.#clock.now());
  }

  #isOver(at: number): boolean {
    return this.#clock.now() - at >= TOLD_FOR_MS;
  }
}
