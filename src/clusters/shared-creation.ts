/** What several keys need once: those that find it missing at the same time share one creation. */
export class SharedCreation {
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #made = new Map<string, number>();

  /** How often it was made so far. To be asked before the attempt that may find it missing. */
  made(key: string): number {
    return this.#made.get(key) ?? 0;
  }

  /**
   * Resolves when it was made after `seen` was asked: by who comes first, for all who come while it lasts, and not again
   * for those whose attempt began before it was done. Rejects as `create` does.
   */
  async make(key: string, seen: number, create: () => Promise<void>): Promise<void> {
    if (this.made(key) !== seen) return;
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
      this.#made.set(key, this.made(key) + 1);
    } finally {
      this.#underWay.delete(key);
    }
  }
}
