import type { Pod, Stored } from "../api/kubernetes.ts";
import { type Amounts, addAmounts, exceeds } from "../api/quantity.ts";
import { podRequests } from "../placement/requests.ts";
import { isBound, isTerminal } from "../pods/phase.ts";

interface Counted {
  requests: Amounts;
  readonly namespace: string;
  /** What of its requests takes room at present. */
  counted: Amounts;
  /** A delegate's, by the member's classes. */
  readonly priority?: number;
}

const NOTHING: Amounts = {};

/**
 * What the delegates of one member request, kept current by addition and subtraction, so that placing a pod costs
 * the same however many there are. A delegate counts from the moment its creation is decided (`reserve`), because the
 * watch shows it only later and a burst would otherwise all go to one member. One that waits for a node, and is larger
 * than any there, takes no room from others: of it only the object counts, as one of `pods`. Limits count all of it, as a
 * ResourceQuota would: it will run as soon as there is a node for it.
 */
export class Load {
  /** What takes room. */
  readonly used: Record<string, number> = {};
  readonly #requested: Record<string, number> = {};
  /** Whether one of the member's nodes is as large. */
  readonly #fits: (requests: Amounts) => boolean;
  readonly #counted = new Map<string, Counted>();
  readonly #reserved = new Map<string, Counted>();
  readonly #namespaces = new Map<string, Record<string, number>>();
  /** What takes room, of delegates by their priority. */
  readonly #priorities = new Map<number, Record<string, number>>();
  /** Delegates without a node: whether they fit changes with the nodes. */
  readonly #waiting = new Map<string, Counted>();

  constructor(fits: (requests: Amounts) => boolean = () => true) {
    this.#fits = fits;
  }

  /** What the delegates of one namespace, or of all, request, with those that there is no node for. */
  usedIn(namespace?: string): Amounts {
    return namespace === undefined ? this.#requested : (this.#namespaces.get(namespace) ?? NOTHING);
  }

  /** What takes room, of delegates with less than this priority. */
  below(priority: number): Amounts {
    const sum: Record<string, number> = {};
    for (const [other, amounts] of this.#priorities) if (other < priority) addAmounts(sum, amounts);
    return sum;
  }

  /** What is reserved for a proxy whose delegate the member has not shown yet. */
  keptFor(proxyUid: string): Amounts | undefined {
    return this.#reserved.get(proxyUid)?.requests;
  }

  /**
   * Counts a delegate that is about to be created; `proxyUid` identifies it until it has a uid of its own. `waits` when
   * there is no room for it.
   */
  reserve(proxyUid: string, requests: Amounts, namespace = "", waits = false): void {
    this.release(proxyUid);
    const entry = { requests, namespace, counted: waits ? this.#waitingCount(requests) : requests };
    this.#reserved.set(proxyUid, entry);
    this.#add(entry);
  }

  /** Takes back a reservation: the creation failed, or the delegate is counted by now. False: there was none. */
  release(proxyUid: string): boolean {
    const entry = this.#reserved.get(proxyUid);
    if (entry === undefined) return false;
    this.#reserved.delete(proxyUid);
    this.#subtract(entry);
    return true;
  }

  /**
   * Counts a delegate as the member shows it; true when something of what it used is free from now on: it has finished, or
   * was made smaller in place.
   */
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
    this.#add(entry);
    return false;
  }

  /** Stops counting a delegate that is gone; true when what it used is free from now on. */
  forget(delegate: Stored<Pod>): boolean {
    const { uid } = delegate.metadata;
    const entry = this.#counted.get(uid);
    if (entry === undefined) return false;
    this.#counted.delete(uid);
    this.#waiting.delete(uid);
    this.#subtract(entry);
    return true;
  }

  /** The member's nodes have changed: what waits there may fit now, or not any more. */
  recount(): void {
    for (const entry of this.#waiting.values()) this.#recount(entry, entry.requests, true);
  }

  #waitingCount(requests: Amounts): Amounts {
    return this.#fits(requests) ? requests : { pods: requests.pods ?? 0 };
  }

  #recount(entry: Counted, requests: Amounts, waits: boolean): void {
    this.#subtract(entry);
    entry.requests = requests;
    entry.counted = waits ? this.#waitingCount(requests) : requests;
    this.#add(entry);
  }

  #add({ requests, counted, namespace, priority }: Counted): void {
    addAmounts(this.used, counted);
    addAmounts(this.#requested, requests);
    addTo(this.#namespaces, namespace, requests);
    if (priority !== undefined) addTo(this.#priorities, priority, counted);
  }

  #subtract({ requests, counted, namespace, priority }: Counted): void {
    addAmounts(this.used, counted, -1);
    addAmounts(this.#requested, requests, -1);
    subtractFrom(this.#namespaces, namespace, requests);
    if (priority !== undefined) subtractFrom(this.#priorities, priority, counted);
  }
}

function addTo<Key>(sums: Map<Key, Record<string, number>>, key: Key, amounts: Amounts): void {
  let sum = sums.get(key);
  if (sum === undefined) {
    sum = {};
    sums.set(key, sum);
  }
  addAmounts(sum, amounts);
}

/** Namespaces and priorities come and go; each of them has a count of pods. */
function subtractFrom<Key>(sums: Map<Key, Record<string, number>>, key: Key, amounts: Amounts): void {
  const sum = sums.get(key);
  if (sum === undefined) return;
  addAmounts(sum, amounts, -1);
  if ((sum.pods ?? 0) <= 0) sums.delete(key);
}

/** True when less of anything is asked for than before. */
function isLess(now: Amounts, before: Amounts): boolean {
  return Object.entries(before).some(([name, amount]) => exceeds(amount, now[name] ?? 0));
}
