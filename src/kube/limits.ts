/** Client-side limits for one cluster's API server. */
export interface ClientLimits {
  /** Requests in flight. One namespace may hold three quarters of them; see `Slots`. */
  readonly concurrency: number;
  /** Requests per second, and the burst after a pause. */
  readonly perSecond: number;
  readonly burst: number;
  /** Default deadline of a request, counted from when it gets a slot. */
  readonly timeoutMs: number;
  /** Longest wait for a slot of a request without a deadline of its own. */
  readonly queueTimeoutMs: number;
  /** Deadline of the TCP and TLS handshakes. */
  readonly connectTimeoutMs: number;
}

/** Limits of a cluster without other settings. */
export const DEFAULT_LIMITS: ClientLimits = {
  concurrency: 64,
  perSecond: 1_000,
  burst: 2_000,
  timeoutMs: 10_000,
  queueTimeoutMs: 10_000,
  connectTimeoutMs: 5_000,
};

/** A token bucket: `reserve` returns how long the next request must wait. */
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

  /** Takes one token, on credit if need be. Returns the wait in ms; undefined, without a token, if it exceeds `mostMs`. */
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

/** A request that waits for a slot or holds one. */
export interface Waiter {
  /** Namespace of the request; empty for cluster-scoped requests and for all namespaces. Lists have a turn of their own. */
  readonly namespace: string;
  readonly granted: () => void;
}

// Slots that a namespace may hold per free slot: alone it may hold three quarters.
const HELD_TO_FREE = 3;

/**
 * A semaphore of `size` slots, fair between namespaces: waiting namespaces take turns, first in first out within each. A
 * namespace whose requests hang (its own webhook does not answer, say) must not starve the others, so each may hold three
 * slots per free one: of 64, one namespace gets 48, two about 27 each, four 14. A namespace without a slot may take the last.
 */
export class Slots {
  #free: number;
  readonly #held = new Map<string, number>();
  // Map and Set keep insertion order and remove any entry in constant time. A served namespace moves to the end.
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

  release({ namespace }: Pick<Waiter, "namespace">): void {
    this.#hold(namespace, -1);
    // Each free slot raises every namespace's limit.
    for (let turn = this.#nextTurn(); turn !== undefined; turn = this.#nextTurn()) this.#grant(turn);
  }

  /** Returns the longest waiting namespace among those that may hold one more slot. */
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

/** A limit of bytes held at the same time. */
export class ByteBudget {
  readonly most: number;
  #held = 0;

  constructor(most: number) {
    this.most = most;
  }

  /** Adds `bytes`, which may be negative. Returns false, and adds nothing, when the limit would be exceeded. */
  hold(bytes: number): boolean {
    if (this.#held + bytes > this.most) return false;
    this.#held += bytes;
    return true;
  }
}
