import type { Clock } from "../runtime/clock.ts";

interface Entry<T> {
  readonly answer: Promise<T>;
  /** Epoch ms; infinite while the request is in flight. */
  expiresAt: number;
}

/** A cache of answers. Concurrent callers with the same key share one request. Failures are not cached. */
export class AnswerCache<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #lifetimeMs: (answer: T) => number;
  readonly #most: number;
  readonly #clock: Clock;

  constructor(options: { readonly lifetimeMs: (answer: T) => number; readonly most: number; readonly clock: Clock }) {
    this.#lifetimeMs = options.lifetimeMs;
    this.#most = options.most;
    this.#clock = options.clock;
  }

  of(key: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#entries.get(key);
    if (known !== undefined && known.expiresAt > this.#clock.now()) return known.answer;
    const entry: Entry<T> = { answer: ask(), expiresAt: Number.POSITIVE_INFINITY };
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) break;
      this.#entries.delete(oldest);
    }
    entry.answer.then(
      (answer) => {
        entry.expiresAt = this.#clock.now() + this.#lifetimeMs(answer);
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    return entry.answer;
  }
}
