import { setLatest } from "../api/latest-entries.ts";

// Callers ask within seconds. A key dropped too early costs one needless create.
const MOST_KEPT = 10_000;

/** Shares one creation among all callers that find the same thing missing at the same time. */
export class SingleFlight {
  readonly #underWay = new Map<string, Promise<void>>();
  /** Oldest first. */
  readonly #made = new Map<string, number>();
  #count = 0;

  /** The number of creations so far. Read it before the attempt that may find something missing. */
  get count(): number {
    return this.#count;
  }

  /** `seen` is `count` before the attempt. Shares a creation in flight. Rejects as `create` does. */
  async make(key: string, seen: number, create: () => Promise<void>): Promise<void> {
    if ((this.#made.get(key) ?? 0) > seen) return;
    let creation = this.#underWay.get(key);
    if (creation === undefined) {
      creation = this.#create(key, create);
      this.#underWay.set(key, creation);
    }
    await creation;
  }

  async #create(key: string, create: () => Promise<void>): Promise<void> {
    try {
      await create();
      this.#note(key);
    } finally {
      this.#underWay.delete(key);
    }
  }

  #note(key: string): void {
    this.#count += 1;
    setLatest(this.#made, key, this.#count, MOST_KEPT);
  }
}
