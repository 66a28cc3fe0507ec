import { setLatest } from "../api/latest-entries.ts";
import type { Clock } from "../runtime/clock.ts";

interface Entry<T> {
  readonly answer: Promise<T>;
  /** Epoch ms; infinite while the request is in flight. */
  expiresAt: number;
}

interface AnswerCacheOptions<T> {
  readonly lifetimeMs: (answer: T) => number;
  readonly most: number;
  readonly clock: Clock;
}

/** A cache of answers. Concurrent callers with the same key share one request. Failures are not cached. */
export class AnswerCache<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #options: AnswerCacheOptions<T>;

  constructor(options: AnswerCacheOptions<T>) {
    this.#options = options;
  }

  of(key: string, ask: () => Promise<T>): Promise<T> {
    const { lifetimeMs, most, clock } = this.#options;
    const known = this.#entries.get(key);
    if (known !== undefined && known.expiresAt > clock.now()) return known.answer;
    const entry: Entry<T> = { answer: ask(), expiresAt: Number.POSITIVE_INFINITY };
    setLatest(this.#entries, key, entry, most);
    entry.answer.then(
      (answer) => {
        entry.expiresAt = clock.now() + lifetimeMs(answer);
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    return entry.answer;
  }
}
