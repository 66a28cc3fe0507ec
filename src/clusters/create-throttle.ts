import { onAbort } from "../kube/abort.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";
import type { Clock, Timer } from "../runtime/clock.ts";

// Creates in flight become uncertain when the member stops answering.
const MOST_IN_FLIGHT = 5;
// A distant member gets one more in flight for each of these in its quickest responses to creates; ms.
const DISTANCE_MS = 50;
// A create that takes longer while the member answers hangs by itself, in an admission webhook for instance, and must not delay others.
const HANGS_AFTER_MS = 500;
// Weight of one slower response in the quickest time: a member under load is not distant.
const FORGETTING = 1 / 1000;
// Longer than an API server takes for the first response of a burst, and short enough for another member to get the pods.
const CREATE_PATIENCE_MS = 1_500;

interface Sent {
  /** Epoch ms. */
  readonly sentAt: number;
  /** No response came. Until the member answers something, it counts as in flight. */
  isLost?: boolean;
}

interface Waiter {
  readonly send: () => void;
  readonly giveUp: (code: "NotSent" | "Aborted", detail: string) => void;
}

export interface ThrottledCreate {
  readonly namespace: string;
  readonly name: string;
  readonly signal?: AbortSignal | undefined;
  /** Asked when its turn comes, if it had to wait. Absent: it is. */
  readonly isWanted?: (() => boolean) | undefined;
}

/** Throttles the creates of one member: when it stops answering, only the few in flight are uncertain. */
export class CreateThrottle {
  readonly #member: string;
  readonly #clock: Clock;
  /** A queue by namespace: creates that hang in one do not delay the others. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  /** Creates in flight, without those that hang. */
  readonly #inFlight = new Set<Sent>();
  /** Undefined before the first response. */
  #quickestMs: number | undefined;
  #silent = false;
  #timer: Timer | undefined;

  constructor(member: string, clock: Clock) {
    this.#member = member;
    this.#clock = clock;
  }

  /** Sends a create in its turn. Rejects with NotSent when the member sends no response meanwhile, or it is not wanted by then. */
  async of<T>(create: ThrottledCreate, send: () => Promise<T>): Promise<T> {
    const sent = await this.#turn(create);
    try {
      const made = await send();
      this.#responded(sent);
      return made;
    } catch (error) {
      if (isKubeError(error) && error.status !== undefined) this.#responded(sent);
      else sent.isLost = true;
      throw error;
    }
  }

  answered(): void {
    this.#silent = false;
    const now = this.#clock.now();
    for (const sent of this.#inFlight) {
      if (sent.isLost === true || now >= sent.sentAt + HANGS_AFTER_MS) this.#inFlight.delete(sent);
    }
    this.#timer?.cancel();
    while (this.#maySend()) {
      const next = this.#next();
      if (next === undefined) return;
      next.send();
    }
    if (this.#waiting.size > 0) this.#awaitAnswer();
  }

  #begin(): Sent {
    const sent: Sent = { sentAt: this.#clock.now() };
    this.#inFlight.add(sent);
    return sent;
  }

  #responded(sent: Sent): void {
    this.#inFlight.delete(sent);
    const tookMs = this.#clock.now() - sent.sentAt;
    const quickestMs = this.#quickestMs ?? tookMs;
    this.#quickestMs = Math.min(tookMs, quickestMs + (tookMs - quickestMs) * FORGETTING);
    this.answered();
  }

  #maySend(): boolean {
    return this.#inFlight.size < MOST_IN_FLIGHT + Math.floor((this.#quickestMs ?? 0) / DISTANCE_MS);
  }

  #turn({ namespace, name, signal, isWanted }: ThrottledCreate): Promise<Sent> {
    if (this.#maySend()) return Promise.resolve(this.#begin());
    return new Promise((resolve, reject) => {
      const waiters = this.#waiting.get(namespace) ?? new Set();
      const waiter: Waiter = {
        send: () => {
          if (isWanted?.() === false) {
            waiter.giveUp("NotSent", "it was not wanted any more when its turn came");
            return;
          }
          forget();
          resolve(this.#begin());
        },
        giveUp: (code, detail) => {
          forget();
          const resource = `pods ${namespace}/${name}`;
          reject(new KubeError(detail, { code, cluster: this.#member, verb: "create", resource }));
        },
      };
      const forget = onAbort(signal, () => {
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
    this.#timer = this.#clock.after(CREATE_PATIENCE_MS, () => {
      this.#silent = true;
      const all = [...this.#waiting.values()].flatMap((waiters) => [...waiters]);
      this.#waiting.clear();
      const seconds = CREATE_PATIENCE_MS / 1000;
      for (const waiter of all) waiter.giveUp("NotSent", `the API server has answered nothing for ${seconds} s`);
    });
  }
}
