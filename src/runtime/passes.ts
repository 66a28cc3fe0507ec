import type { Clock, Timer } from "./clock.ts";

/** What passes are made of. */
export interface PassesOptions<Key> {
  readonly clock: Clock;
  /** What a pass that begins looks at, in this order. */
  readonly keys: () => readonly Key[];
  /** Has them looked at; `done` is told how long that has kept the process busy, in milliseconds. */
  readonly look: (keys: readonly Key[], done: (busyMs: number) => void) => void;
}

// What waits takes a tenth of the one thread at most, however much of it there is.
const RESTS = 10;

/** Looks at all that waits, now and then: the more a pass costs, the later comes the next. */
export class Passes<Key> {
  readonly #options: PassesOptions<Key>;
  #next: { readonly at: number; readonly timer: Timer } | undefined;
  #restUntil = 0;
  #underWay = false;
  /** What was asked for during a pass. */
  #againAfterMs: number | undefined;

  constructor(options: PassesOptions<Key>) {
    this.#options = options;
  }

  /** Asks for a pass after `delayMs`, or when the last has been rested from; many before it begins are one. */
  ask(delayMs: number): void {
    if (this.#underWay) {
      this.#againAfterMs = Math.min(this.#againAfterMs ?? delayMs, delayMs);
      return;
    }
    const now = this.#options.clock.now();
    const at = Math.max(now + delayMs, this.#restUntil);
    if (this.#next !== undefined && this.#next.at <= at) return;
    this.#next?.timer.cancel();
    this.#next = undefined;
    if (at <= now) this.#begin();
    else this.#next = { at, timer: this.#options.clock.after(at - now, () => this.#begin()) };
  }

  /** No pass begins any more, unless one is asked for. */
  stop(): void {
    this.#next?.timer.cancel();
    this.#next = undefined;
    this.#againAfterMs = undefined;
  }

  #begin(): void {
    this.#next = undefined;
    this.#underWay = true;
    const { keys, look, clock } = this.#options;
    look(keys(), (busyMs) => {
      this.#underWay = false;
      this.#restUntil = clock.now() + RESTS * busyMs;
      const delayMs = this.#againAfterMs;
      this.#againAfterMs = undefined;
      if (delayMs !== undefined) this.ask(delayMs);
    });
  }
}
