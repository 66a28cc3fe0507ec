import { type Clock, sleepWith, type Timer } from "../../../src/runtime/clock.ts";

interface Pending {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that moves only when a test moves it. */
export class FakeClock implements Clock {
  #now: number;
  #aheadMs = 0;
  #order = 0;
  readonly #pending = new Set<Pending>();
  readonly sleep: Clock["sleep"];

  constructor(now: number = Date.UTC(2024, 0, 1)) {
    this.#now = now;
    this.sleep = sleepWith((ms, callback) => this.after(ms, callback));
  }

  /** Timers that are waiting. */
  get pending(): number {
    return this.#pending.size;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now + this.#aheadMs;
  }

  /** Sets the machine's time on, or back; no time passes. */
  jump(ms: number): void {
    this.#aheadMs += ms;
  }

  after(ms: number, callback: () => void): Timer {
    const timer = { at: this.#now + ms, order: this.#order, callback };
    this.#order += 1;
    this.#pending.add(timer);
    return { cancel: () => this.#pending.delete(timer) };
  }

  /** Moves time to the next timer and fires it; does nothing when none waits. */
  async fireNext(): Promise<void> {
    const next = Math.min(...[...this.#pending].map(({ at }) => at));
    if (Number.isFinite(next)) await this.advance(next - this.#now);
  }

  /** Moves time on, firing timers in their order and letting promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      const next = [...this.#pending].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (next === undefined) break;
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await settle();
    }
    this.#now = end;
    await settle();
  }

  /** Advances in steps of so many ms, so that what each of them starts is done before the next one. */
  async advanceInSteps(steps: number, ms: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) await this.advance(ms);
  }
}

/** Lets everything that is ready to run do so. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
