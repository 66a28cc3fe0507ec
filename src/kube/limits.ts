/** How hard one cluster's API server may be driven. */
export interface ClientLimits {
  /** Requests under way at once; a server that never answers holds no more than this. */
  readonly concurrency: number;
  /** Requests a second on average, and how many may go at once after a pause. */
  readonly perSecond: number;
  readonly burst: number;
  /** Deadline of a request that names none, from the moment it has a slot. */
  readonly timeoutMs: number;
  /** Longest wait of such a request for a slot. */
  readonly queueTimeoutMs: number;
  /** Longest wait for a TCP and TLS connection. */
  readonly connectTimeoutMs: number;
}

/** Limits for a cluster that is not told otherwise. */
export const DEFAULT_LIMITS: ClientLimits = {
  concurrency: 64,
  perSecond: 1_000,
  burst: 2_000,
  timeoutMs: 10_000,
  queueTimeoutMs: 10_000,
  connectTimeoutMs: 5_000,
};

/** Spaces requests out: `reserve` says how long the next one must wait. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #filledAt: number;

  constructor(perSecond: number, burst: number, nowMs: number) {
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAt = nowMs;
  }

  /** Takes one token, owing it when there is none, and returns the wait until it is paid; `undefined`: longer than `mostMs`. */
  reserve(nowMs: number, mostMs: number): number | undefined {
    this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#filledAt) * this.#perMs);
    this.#filledAt = nowMs;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      return 0;
    }
    const wait = (1 - this.#tokens) / this.#perMs;
    if (wait > mostMs) return undefined;
    this.#tokens -= 1;
    return wait;
  }
}

/** A place in the queue for a slot. */
export interface Waiter {
  /** Called when the slot is the waiter's. */
  readonly granted: () => void;
}

/** At most `size` holders at once; who waits longest is next. */
export class Slots {
  #free: number;
  // A Set keeps insertion order and gives up any place at once.
  readonly #waiting = new Set<Waiter>();

  constructor(size: number) {
    this.#free = size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a free slot, or joins the queue and returns false. */
  take(waiter: Waiter): boolean {
    if (this.#free > 0) {
      this.#free -= 1;
      return true;
    }
    this.#waiting.add(waiter);
    return false;
  }

  /** Leaves the queue; false when the slot was granted already. */
  leave(waiter: Waiter): boolean {
    return this.#waiting.delete(waiter);
  }

  release(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next.granted();
      return;
    }
    this.#free += 1;
  }
}

/** Bytes that may be held at once. */
export class ByteBudget {
  readonly #most: number;
  #held = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get most(): number {
    return this.#most;
  }

  /** Holds so many more, or fewer; false when that is too many, and then they are not held. */
  hold(bytes: number): boolean {
    if (this.#held + bytes > this.#most) return false;
    this.#held += bytes;
    return true;
  }
}
