import type { Clock } from "../runtime/clock.ts";

// Longer than an API server under heavy load takes to create a pod, and much shorter than a request's deadline.
const LATE_MS = 3_000;

/** Tracks whether a member answers in time: a hint for placement, earlier than the probe. */
export class LatencyMonitor {
  readonly #options: { readonly clock: Clock; readonly onChange: () => void };
  #late = 0;
  #failed = false;

  constructor(options: { readonly clock: Clock; readonly onChange: () => void }) {
    this.#options = options;
  }

  /** A response is overdue, or the last request got none. */
  get overdue(): boolean {
    return this.#late > 0 || this.#failed;
  }

  async of<T>(answer: Promise<T>): Promise<T> {
    let late = 0;
    const timer = this.#options.clock.after(LATE_MS, () => {
      late = 1;
      this.#change(this.#late + late, this.#failed);
    });
    try {
      return await answer;
    } finally {
      timer.cancel();
      this.#change(this.#late - late, this.#failed);
    }
  }

  failed(): void {
    this.#change(this.#late, true);
  }

  answered(): void {
    this.#change(this.#late, false);
  }

  #change(late: number, failed: boolean): void {
    const before = this.overdue;
    this.#late = late;
    this.#failed = failed;
    if (this.overdue !== before) this.#options.onChange();
  }
}

/** Adds up how long a member gave no answer, or a late one. */
export class UnresponsiveTime {
  readonly #clock: Pick<Clock, "now">;
  /** Sum of the times that have ended. */
  #endedMs = 0;
  /** Epoch ms. Undefined while the member answers in time. */
  #since: number | undefined;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get totalMs(): number {
    return this.#endedMs + (this.#since === undefined ? 0 : this.#clock.now() - this.#since);
  }

  note(responsive: boolean): void {
    this.#endedMs = this.totalMs;
    this.#since = responsive ? undefined : this.#clock.now();
  }
}
