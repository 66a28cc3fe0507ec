import { AbortCallbacks } from "../kube/abort.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";
import type { Clock, Timer } from "../runtime/clock.ts";

// Creates in flight since the last response. They become uncertain when the member stops answering.
const MOST_UNANSWERED = 2;
// Longer than an API server takes for the first response of a burst, and short enough for another member to get the pods.
const PATIENCE_MS = 1_500;

/** A queued create. */
interface Waiter {
  readonly send: () => void;
  readonly giveUp: (code: "NotSent" | "Aborted", detail: string) => void;
}

/** The name of a create in errors, and the signal that ends its wait. */
export interface ThrottledCreate {
  readonly namespace: string;
  readonly name: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Throttles the creates of one member: two in flight, and two more after each response of the member to any request. When
 * the member stops answering, few creates are uncertain; the others were not sent, and their pods may go elsewhere.
 */
export class CreateThrottle {
  readonly #member: string;
  readonly #clock: Clock;
  readonly #aborts = new AbortCallbacks();
  /** Queues by namespace, the next one first, so that creates that hang in one namespace do not delay the others. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #unanswered = 0;
  #silent = false;
  #timer: Timer | undefined;

  constructor(member: string, clock: Clock) {
    this.#member = member;
    this.#clock = clock;
  }

  /** Sends a create in its turn. Rejects with NotSent when the member sends no response meanwhile. */
  async of<T>(create: ThrottledCreate, send: () => Promise<T>): Promise<T> {
    await this.#turn(create);
    try {
      const made = await send();
      this.answered();
      return made;
    } catch (error) {
      if (isKubeError(error) && error.status !== undefined) this.answered();
      throw error;
    }
  }

  /** Records a response of the member. */
  answered(): void {
    this.#unanswered = 0;
    this.#silent = false;
    this.#timer?.cancel();
    while (this.#unanswered < MOST_UNANSWERED) {
      const next = this.#next();
      if (next === undefined) return;
      this.#unanswered += 1;
      next.send();
    }
    if (this.#waiting.size > 0) this.#awaitAnswer();
  }

  #turn({ namespace, name, signal }: ThrottledCreate): Promise<void> {
    if (this.#unanswered < MOST_UNANSWERED) {
      this.#unanswered += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const waiters = this.#waiting.get(namespace) ?? new Set();
      const waiter: Waiter = {
        send: () => {
          forget();
          resolve();
        },
        giveUp: (code, detail) => {
          forget();
          const resource = `pods ${namespace}/${name}`;
          reject(new KubeError(detail, { code, cluster: this.#member, verb: "create", resource }));
        },
      };
      const forget = this.#aborts.add(signal, () => {
        this.#leave(namespace, waiter);
        waiter.giveUp("Aborted", "the caller gave up");
      });
      if (this.#silent) {
        waiter.giveUp("NotSent", "the API server answers nothing at present");
        return;
      }
      if (this.#waiting.size === 0) this.#awaitAnswer();
      this.#waiting.set(namespace, waiters.add(waiter));
    });
  }

  /** Dequeues the next create, and moves its namespace to the end. */
  #next(): Waiter | undefined {
    for (const [namespace, waiters] of this.#waiting) {
      for (const waiter of waiters) {
        this.#leave(namespace, waiter);
        if (this.#waiting.delete(namespace)) this.#waiting.set(namespace, waiters);
        return waiter;
      }
    }
    return undefined;
  }

  #leave(namespace: string, waiter: Waiter): void {
    const waiters = this.#waiting.get(namespace);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiting.delete(namespace);
  }

  #awaitAnswer(): void {
    this.#timer = this.#clock.after(PATIENCE_MS, () => {
      this.#silent = true;
      const all = [...this.#waiting.values()].flatMap((waiters) => [...waiters]);
      this.#waiting.clear();
      const seconds = PATIENCE_MS / 1000;
      for (const waiter of all) waiter.giveUp("NotSent", `the API server has answered nothing for ${seconds} s`);
    });
  }
}
