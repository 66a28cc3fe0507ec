import type { Pod, Stored } from "../api/kubernetes.ts";
import { type Amounts, addAmounts, exceeds } from "../api/quantity.ts";
import { podRequests } from "../placement/requests.ts";
import { isBound, isTerminal } from "../pods/pod-state.ts";

interface Counted {
  requests: Amounts;
  readonly namespace: string;
  /** The part of the requests that occupies nodes. */
  counted: Amounts;
  readonly priority?: number;
  /** The reservation fits no node now. */
  readonly waits?: boolean;
}

const NOTHING: Amounts = {};

/**
 * The sum of the requests of one member's delegates. One counts once its creation is decided (`reserve`): a burst
 * would otherwise all go to one member.
 */
export class DelegateRequests {
  readonly used: Record<string, number> = {};
  readonly #requested: Record<string, number> = {};
  readonly #fits: (requests: Amounts) => boolean;
  readonly #onChange: () => void;
  readonly #counted = new Map<string, Counted>();
  readonly #reserved = new Map<string, Counted>();
  readonly #namespaces = new Map<string, Record<string, number>>();
  readonly #priorities = new Map<number, Record<string, number>>();
  /** Unscheduled delegates, which may fit after a change of the nodes. */
  readonly #waiting = new Map<string, Counted>();

  /** `onChange` is called after each change of a sum. */
  constructor(fits: (requests: Amounts) => boolean = () => true, onChange: () => void = () => {}) {
    this.#fits = fits;
    this.#onChange = onChange;
  }

  /** Includes those that fit no node. */
  usedIn(namespace?: string): Amounts {
    return namespace === undefined ? this.#requested : (this.#namespaces.get(namespace) ?? NOTHING);
  }

  below(priority: number): Amounts {
    const sum: Record<string, number> = {};
    for (const [other, amounts] of this.#priorities) if (other < priority) addAmounts(sum, amounts);
    return sum;
  }

  /** Returns the reservation for a proxy whose delegate the watch has not shown yet. */
  reservedFor(proxyUid: string): Amounts | undefined {
    return this.#reserved.get(proxyUid)?.requests;
  }

  /** `proxyUid` identifies the delegate until it has a uid. `waits` when it fits no node now. */
  reserve(proxyUid: string, requests: Amounts, namespace = "", waits = false): void {
    this.release(proxyUid);
    const entry = { requests, namespace, counted: waits ? this.#waitingCount(requests) : requests, waits };
    this.#reserved.set(proxyUid, entry);
    this.#sum(entry, 1);
  }

  /** Returns false when there was no reservation. */
  release(proxyUid: string): boolean {
    const entry = this.#reserved.get(proxyUid);
    if (entry === undefined) return false;
    this.#reserved.delete(proxyUid);
    this.#sum(entry, -1);
    return true;
  }

  /** Replaces the amounts of a reservation. Returns true when that freed some; false when there is no reservation. */
  correct(proxyUid: string, requests: Amounts): boolean {
    const entry = this.#reserved.get(proxyUid);
    if (entry === undefined) return false;
    const freed = isLess(requests, entry.requests);
    this.#recount(entry, requests, entry.waits === true);
    return freed;
  }

  /** Returns true when the delegate freed resources: it finished, or was resized to less. */
  count(delegate: Stored<Pod>, proxyUid: string | undefined): boolean {
    if (proxyUid !== undefined) this.release(proxyUid);
    if (isTerminal(delegate)) return this.forget(delegate);
    const { uid, namespace = "" } = delegate.metadata;
    const known = this.#counted.get(uid);
    const requests = podRequests(delegate);
    if (known !== undefined) {
      const shrunk = isLess(requests, known.requests);
      if (isBound(delegate)) this.#waiting.delete(uid);
      this.#recount(known, requests, this.#waiting.has(uid));
      return shrunk;
    }
    const entry: Counted = { requests, namespace, counted: requests, priority: delegate.spec?.priority ?? 0 };
    if (!isBound(delegate)) {
      entry.counted = this.#waitingCount(requests);
      this.#waiting.set(uid, entry);
    }
    this.#counted.set(uid, entry);
    this.#sum(entry, 1);
    return false;
  }

  /** Returns true when that freed resources. */
  forget(delegate: Stored<Pod>): boolean {
    const { uid } = delegate.metadata;
    const entry = this.#counted.get(uid);
    if (entry === undefined) return false;
    this.#counted.delete(uid);
    this.#waiting.delete(uid);
    this.#sum(entry, -1);
    return true;
  }

  /** Counts delegates that wait for a node anew, after a change of the nodes. */
  recount(): void {
    for (const entry of this.#waiting.values()) {
      const fitted = entry.counted === entry.requests;
      if (this.#fits(entry.requests) !== fitted) this.#recount(entry, entry.requests, true);
    }
  }

  #waitingCount(requests: Amounts): Amounts {
    return this.#fits(requests) ? requests : { pods: requests.pods ?? 0 };
  }

  #recount(entry: Counted, requests: Amounts, waits: boolean): void {
    this.#sum(entry, -1);
    entry.requests = requests;
    entry.counted = waits ? this.#waitingCount(requests) : requests;
    this.#sum(entry, 1);
  }

  #sum({ requests, counted, namespace, priority }: Counted, sign: 1 | -1): void {
    addAmounts(this.used, counted, sign);
    addAmounts(this.#requested, requests, sign);
    addTo(this.#namespaces, namespace, requests, sign);
    if (priority !== undefined) addTo(this.#priorities, priority, counted, sign);
    this.#onChange();
  }
}

function addTo<Key>(sums: Map<Key, Record<string, number>>, key: Key, amounts: Amounts, sign: 1 | -1): void {
  const sum = sums.get(key) ?? {};
  addAmounts(sum, amounts, sign);
  if (sign === -1 && (sum.pods ?? 0) <= 0) sums.delete(key);
  else sums.set(key, sum);
}

function isLess(now: Amounts, before: Amounts): boolean {
  return Object.entries(before).some(([name, amount]) => exceeds(amount, now[name] ?? 0));
}
