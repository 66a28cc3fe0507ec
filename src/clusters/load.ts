import type { Pod, Stored } from "../api/kubernetes.ts";
import { type Amounts, addAmounts } from "../api/quantity.ts";
import { podRequests } from "../placement/requests.ts";
import { isTerminal } from "../pods/phase.ts";

interface Counted {
  readonly requests: Amounts;
  readonly namespace: string;
}

const NOTHING: Amounts = {};

/**
 * What the delegates of one member request, kept current by addition and subtraction, so that placing a pod costs
 * the same however many there are. A delegate counts from the moment its creation is decided (`reserve`), because the
 * watch shows it only later and a burst would otherwise all go to one member.
 */
export class Load {
  readonly used: Record<string, number> = {};
  readonly #counted = new Map<string, Counted>();
  readonly #reserved = new Map<string, Counted>();
  readonly #namespaces = new Map<string, Record<string, number>>();

  /** What the delegates of one namespace request. */
  usedIn(namespace: string): Amounts {
    return this.#namespaces.get(namespace) ?? NOTHING;
  }

  /** What is reserved for a proxy whose delegate the member has not shown yet. */
  keptFor(proxyUid: string): Amounts | undefined {
    return this.#reserved.get(proxyUid)?.requests;
  }

  /** Counts a delegate that is about to be created; `proxyUid` identifies it until it has a uid of its own. */
  reserve(proxyUid: string, requests: Amounts, namespace = ""): void {
    this.release(proxyUid);
    const counted = { requests, namespace };
    this.#reserved.set(proxyUid, counted);
    this.#add(counted);
  }

  /** Takes back a reservation: the creation failed, or the delegate is counted by now. */
  release(proxyUid: string): void {
    const counted = this.#reserved.get(proxyUid);
    if (counted === undefined) return;
    this.#reserved.delete(proxyUid);
    this.#subtract(counted);
  }

  /** Counts a delegate as the member shows it; true when it has finished and what it used is free from now on. */
  count(delegate: Stored<Pod>, proxyUid: string | undefined): boolean {
    if (proxyUid !== undefined) this.release(proxyUid);
    if (isTerminal(delegate)) return this.forget(delegate);
    if (this.#counted.has(delegate.metadata.uid)) return false;
    const counted = { requests: podRequests(delegate), namespace: delegate.metadata.namespace ?? "" };
    this.#counted.set(delegate.metadata.uid, counted);
    this.#add(counted);
    return false;
  }

  /** Stops counting a delegate that is gone; true when what it used is free from now on. */
  forget(delegate: Stored<Pod>): boolean {
    const counted = this.#counted.get(delegate.metadata.uid);
    if (counted === undefined) return false;
    this.#counted.delete(delegate.metadata.uid);
    this.#subtract(counted);
    return true;
  }

  #add({ requests, namespace }: Counted): void {
    addAmounts(this.used, requests);
    let sum = this.#namespaces.get(namespace);
    if (sum === undefined) {
      sum = {};
      this.#namespaces.set(namespace, sum);
    }
    addAmounts(sum, requests);
  }

  #subtract({ requests, namespace }: Counted): void {
    addAmounts(this.used, requests, -1);
    const sum = this.#namespaces.get(namespace);
    if (sum === undefined) return;
    addAmounts(sum, requests, -1);
    // Namespaces come and go; each of them has a count of pods.
    if ((sum.pods ?? 0) <= 0) this.#namespaces.delete(namespace);
  }
}
