/** Keys that are looked at together, behind all others. */
export interface Pass {
  /** Those that have not had their turn. */
  left: number;
  /** How long the others have kept the process busy. */
  busyMs: number;
  /** All have had their turn. */
  readonly done: (busyMs: number) => void;
}

/** A key whose turn has come. */
export interface Taken<Key> {
  readonly key: Key;
  /** Since when it has waited; epoch ms. */
  readonly since: number;
  /** Present when it was behind the others. */
  readonly pass?: Pass;
}

/** Keys that wait for their turn, each once: in the order in which they came, and passes behind them. */
export class KeyQueue<Key> {
  readonly #first = new Map<Key, number>();
  readonly #behind = new Map<Key, { readonly since: number; readonly pass: Pass }>();

  get size(): number {
    return this.#first.size + this.#behind.size;
  }

  /** Puts a key before all passes; false when it waited already. */
  add(key: Key, since: number): boolean {
    if (this.#first.has(key)) return false;
    const behind = this.#behind.get(key);
    this.#first.set(key, since);
    if (behind === undefined) return true;
    this.#behind.delete(key);
    had(behind.pass);
    return false;
  }

  /** Puts a key behind all others; false when it waited already. */
  addBehind(key: Key, since: number, pass: Pass): boolean {
    if (this.#first.has(key) || this.#behind.has(key)) return false;
    this.#behind.set(key, { since, pass });
    pass.left += 1;
    return true;
  }

  /** Takes the next key out; with `behind` one of a pass, if there is any. */
  next(behind: boolean): Taken<Key> | undefined {
    for (const [key, since] of behind && this.#behind.size > 0 ? [] : this.#first) {
      this.#first.delete(key);
      return { key, since };
    }
    for (const [key, { since, pass }] of this.#behind) {
      this.#behind.delete(key);
      return { key, since, pass };
    }
    return undefined;
  }

  clear(): void {
    this.#first.clear();
    this.#behind.clear();
  }
}

/** One key of the pass has had its turn, or gets it before the others. */
export function had(pass: Pass, busyMs = 0): void {
  pass.left -= 1;
  pass.busyMs += busyMs;
  if (pass.left === 0) pass.done(pass.busyMs);
}
