/** How hard one cluster's API server may be driven. */
export interface ClientLimits {
  /** Requests under way at once; a server that never answers holds no more than this, and one namespace three quarters; see `Slots`. */
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

/** A place in the queue for a slot, and the slot when it has been granted. */
export interface Waiter {
  /** Of the request; empty for what is in no namespace, or in all. */
  readonly namespace: string;
  /** Called when the slot is the waiter's. */
  readonly granted: () => void;
}

// Of slots that one namespace holds, to each that is left free: alone it has three quarters.
const HELD_TO_FREE = 3;

/**
 * At most `size` holders at once. Namespaces that wait take turns, and within one who waits longest is next: one whose requests hang
 * (a webhook of its own that does not answer) must not take the server from all others, and neither must several. So each holds three
 * times as many slots as it leaves free, at most: of 64 one has 48, two have some 27 each, four 14. Whoever holds none may have the last.
 */
export class Slots {
  #free: number;
  readonly #held = new Map<string, number>();
  // Maps and Sets keep the order of insertion and give up any place at once. Who has had a turn goes to the end.
  readonly #waiting = new Map<string, Set<Waiter>>();

  constructor(size: number) {
    this.#free = size;
  }

  get waiting(): number {
    let count = 0;
    for (const waiters of this.#waiting.values()) count += waiters.size;
    return count;
  }

  /** Takes a free slot, or joins the queue and returns false. */
  take(waiter: Waiter): boolean {
    const { namespace } = waiter;
    const waiters = this.#waiting.get(namespace);
    if (waiters === undefined && this.#mayHold(namespace)) {
      this.#hold(namespace, 1);
      return true;
    }
    if (waiters === undefined) this.#waiting.set(namespace, new Set([waiter]));
    else waiters.add(waiter);
    return false;
  }

  /** Leaves the queue; false when the slot was granted already. */
  leave(waiter: Waiter): boolean {
    const waiters = this.#waiting.get(waiter.namespace);
    if (waiters?.delete(waiter) !== true) return false;
    if (waiters.size === 0) this.#waiting.delete(waiter.namespace);
    return true;
  }

  /** Gives back the slot that this waiter took or was granted. */
  release({ namespace }: Pick<Waiter, "namespace">): void {
    this.#hold(namespace, -1);
    // With one slot more, each namespace may hold some more.
    for (let turn = this.#nextTurn(); turn !== undefined; turn = this.#nextTurn()) this.#grant(turn);
  }

  /** The namespace that has waited longest for its turn, of those that may hold one more slot. */
  #nextTurn(): string | undefined {
    for (const namespace of this.#waiting.keys()) if (this.#mayHold(namespace)) return namespace;
    return undefined;
  }

  #grant(namespace: string): void {
    const waiters = this.#waiting.get(namespace) ?? new Set<Waiter>();
    this.#waiting.delete(namespace);
    for (const waiter of waiters) {
      waiters.delete(waiter);
      if (waiters.size > 0) this.#waiting.set(namespace, waiters);
      this.#hold(namespace, 1);
      waiter.granted();
      return;
    }
  }

  #mayHold(namespace: string): boolean {
    if (this.#free === 0) return false;
    const held = this.#holds(namespace);
    return held === 0 || held < HELD_TO_FREE * (this.#free - 1);
  }

  #holds(namespace: string): number {
    return this.#held.get(namespace) ?? 0;
  }

  #hold(namespace: string, more: 1 | -1): void {
    this.#free -= more;
    const held = this.#holds(namespace) + more;
    if (held > 0) this.#held.set(namespace, held);
    else this.#held.delete(namespace);
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
