// Whoever finds it missing asks within seconds; what is forgotten too early is asked for once more than needed.
const MOST_KEPT = 10_000;

/** What several keys need once: those that find it missing at the same time share one creation. */
export class SharedCreation {
  readonly #underWay = new Map<string, Promise<void>>();
  /** How many had been made with each, when it was last made; the oldest first. */
  readonly #made = new Map<string, number>();
  #count = 0;

  /** How many were made so far. To be asked before the attempt that may find one missing. */
  get count(): number {
    return this.#count;
  }

  /**
   * Creates what was missing when `seen` was read. Callers that come while a creation is under way share it, and one whose
   * attempt began before it ended does not repeat it. Rejects as `create` does.
   */
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
    this.#made.delete(key);
    this.#made.set(key, this.#count);
    const [oldest] = this.#made.keys();
    if (this.#made.size > MOST_KEPT && oldest !== undefined) this.#made.delete(oldest);
  }
}
