import type { Clock, Timer } from "./clock.ts";

export class KeyedTimers<Key> {
  readonly #clock: Pick<Clock, "after">;
  readonly #timers = new Map<Key, Timer>();
  #stopped = false;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#timers.size;
  }

  has(key: Key): boolean {
    return this.#timers.has(key);
  }

  /** Calls back once after `ms`. Calls coalesce: a pending timer of the key stays as it is. */
  start(key: Key, ms: number, callback: () => void): void {
    if (this.#stopped || this.#timers.has(key)) return;
    const timer = this.#clock.after(ms, () => {
      this.#timers.delete(key);
      callback();
    });
    this.#timers.set(key, timer);
  }

  /** Calls back once after `ms`, in place of a pending timer of the key. */
  restart(key: Key, ms: number, callback: () => void): void {
    this.cancel(key);
    this.start(key, ms, callback);
  }

  cancel(key: Key): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
  }

  /** Cancels all timers. None starts any more. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}
