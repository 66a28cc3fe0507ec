import type { Clock } from "../runtime/clock.ts";

// Longer than an API server under heavy load takes to create a pod, and well before a request's deadline.
const LATE_MS = 3_000;

/** Whether a member answers in time: a hint for placement long before the probe has given it up. */
export class Promptness {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #late = 0;
  #failed = false;

  constructor(options: { readonly clock: Clock; readonly onChange: () => void }) {
    this.#clock = options.clock;
    this.#onChange = options.onChange;
  }

  /** True while an answer is overdue, or the last one did not come at all. */
  get overdue(): boolean {
    return this.#late > 0 || this.#failed;
  }

  /** Settles as the answer does, and takes note of how long that takes. */
  async of<T>(answer: Promise<T>): Promise<T> {
    let late = 0;
    const timer = this.#clock.after(LATE_MS, () => {
      late = 1;
      this.#change(() => {
        this.#late += 1;
      });
    });
    try {
      return await answer;
    } finally {
      timer.cancel();
      this.#change(() => {
        this.#late -= late;
      });
    }
  }

  /** A request was not answered at all. */
  failed(): void {
    this.#change(() => {
      this.#failed = true;
    });
  }

  /** The member has answered just now. */
  answered(): void {
    this.#change(() => {
      this.#failed = false;
    });
  }

  #change(change: () => void): void {
    const before = this.overdue;
    change();
    if (this.overdue !== before) this.#onChange();
  }
}
