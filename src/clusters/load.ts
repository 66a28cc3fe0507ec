import type { Pod, Stored } from "../api/kubernetes.ts";
import { type Amounts, addAmounts } from "../api/quantity.ts";
import { podRequests } from "../placement/requests.ts";
import { isTerminal } from "../pods/phase.ts";

/**
 * What the delegates of one member request, kept current by addition and subtraction, so that placing a pod costs
 * the same however many there are. A delegate counts from the moment its creation is decided (`reserve`), because the
 * watch shows it only later and a burst would otherwise all go to one member.
 */
export class Load {
  readonly used: Record<string, number> = {};
  readonly #counted = new Map<string, Amounts>();
  readonly #reserved = new Map<string, Amounts>();

  /** Counts a delegate that is about to be created; `proxyUid` identifies it until it has a uid of its own. */
  reserve(proxyUid: string, requests: Amounts): void {
    this.release(proxyUid);
    this.#reserved.set(proxyUid, requests);
    addAmounts(this.used, requests);
  }

  /** Takes back a reservation: the creation failed, or the delegate is counted by now. */
  release(proxyUid: string): void {
    const requests = this.#reserved.get(proxyUid);
    if (requests === undefined) return;
    this.#reserved.delete(proxyUid);
    addAmounts(this.used, requests, -1);
  }

  /** Counts a delegate as the member shows it; true when it has finished and what it used is free from now on. */
  count(delegate: Stored<Pod>, proxyUid: string | undefined): boolean {
    if (proxyUid !== undefined) this.release(proxyUid);
    if (isTerminal(delegate)) return this.forget(delegate);
    if (this.#counted.has(delegate.metadata.uid)) return false;
    const requests = podRequests(delegate);
    this.#counted.set(delegate.metadata.uid, requests);
    addAmounts(this.used, requests);
    return false;
  }

  /** Stops counting a delegate that is gone; true when what it used is free from now on. */
  forget(delegate: Stored<Pod>): boolean {
    const requests = this.#counted.get(delegate.metadata.uid);
    if (requests === undefined) return false;
    this.#counted.delete(delegate.metadata.uid);
    addAmounts(this.used, requests, -1);
    return true;
  }
}
