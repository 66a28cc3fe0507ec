import type { Clock } from "./clock.ts";

/** How delays between attempts grow: each doubles the last. */
export interface BackoffLimits {
  /** First delay before jitter, in milliseconds. */
  readonly initialMs: number;
  readonly maxMs: number;
}

export interface BackoffOptions extends BackoffLimits {
  /** Random number in [0, 1). */
  readonly random?: () => number;
}

/** Returns the delay after this many earlier ones, in milliseconds and without jitter. */
export function backoffMs(earlier: number, { initialMs, maxMs }: BackoffLimits): number {
  return Math.min(maxMs, initialMs * 2 ** Math.min(earlier, 30));
}

/** Jittered exponential delays: each step doubles the last, and a delay is between half and the whole of its step. */
export class Backoff {
  readonly #limits: BackoffLimits;
  readonly #random: () => number;
  #attempts = 0;

  constructor(options: BackoffOptions) {
    this.#limits = options;
    this.#random = options.random ?? Math.random;
  }

  get attempts(): number {
    return this.#attempts;
  }

  /** Delay before the next attempt, in milliseconds. */
  next(): number {
    const step = backoffMs(this.#attempts, this.#limits);
    this.#attempts += 1;
    return step * (0.5 + this.#random() / 2);
  }

  reset(): void {
    this.#attempts = 0;
  }
}

/**
 * Backoff of a long-lived connection: only one that lasted `healthyMs` resets it, or a server that drops each at once
 * would be dialled without pause.
 */
export class ConnectionBackoff {
  readonly #backoff: Backoff;
  readonly #healthyMs: number;
  readonly #clock: Clock;
  #workingSince: number | undefined;

  constructor(options: BackoffOptions & { readonly healthyMs: number; readonly clock: Clock }) {
    this.#backoff = new Backoff(options);
    this.#healthyMs = options.healthyMs;
    this.#clock = options.clock;
  }

  working(): void {
    this.#workingSince ??= this.#clock.now();
  }

  /** Returns the delay before the next attempt: zero after a healthy while. */
  ended(): number {
    const healthy = this.#workingSince !== undefined && this.#clock.now() - this.#workingSince >= this.#healthyMs;
    this.#workingSince = undefined;
    if (!healthy) return this.#backoff.next();
    this.#backoff.reset();
    return 0;
  }
}
