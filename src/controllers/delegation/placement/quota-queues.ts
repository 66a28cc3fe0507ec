import type { ObjectKey } from "../../../api/kubernetes.ts";
import { QuotaQueue, type QuotaQueueOptions } from "./quota-queue.ts";

/** A namespace of a member, where quotas may be full. */
export interface QuotaPlace {
  readonly member: string;
  readonly namespace: string;
}

/**
 * The pods that members refused because a quota was full. Each asks again after a rest of its own, which grows: when another one ends there,
 * they need not wait for that, and yet not all of them ask. Losing this costs time alone.
 */
export class QuotaQueues {
  readonly #options: QuotaQueueOptions;
  /** Those in which pods wait. */
  readonly #queues = new Map<string, QuotaQueue>();

  constructor(options: QuotaQueueOptions) {
    this.#options = options;
  }

  /** A quota there had no room for the pod. */
  refused(place: QuotaPlace, proxyUid: string, key: ObjectKey): void {
    // Nobody tells any more of one that went while it asked.
    if (this.#options.proxyOf(key)?.metadata.uid !== proxyUid) return;
    const id = idOf(place);
    const queue = this.#queues.get(id) ?? new QuotaQueue(place.member, this.#options);
    this.#queues.set(id, queue);
    queue.refused(proxyUid, key);
  }

  /** The member has made the pod's delegate. */
  accepted(place: QuotaPlace, proxyUid: string): void {
    this.#change(idOf(place), (queue) => queue.accepted(proxyUid));
  }

  /** A delegate has ended there. */
  onEnded(place: QuotaPlace): void {
    this.#change(idOf(place), (queue) => queue.onEnded());
  }

  /** The pod has its node, or is gone. */
  leave(proxyUid: string): void {
    for (const id of this.#queues.keys()) this.#change(id, (queue) => queue.remove(proxyUid));
  }

  /** In how many namespaces of members pods wait. */
  get size(): number {
    return this.#queues.size;
  }

  stop(): void {
    for (const queue of this.#queues.values()) queue.stop();
    this.#queues.clear();
  }

  #change(id: string, change: (queue: QuotaQueue) => void): void {
    const queue = this.#queues.get(id);
    if (queue === undefined) return;
    change(queue);
    if (queue.size === 0) this.#queues.delete(id);
  }
}

function idOf({ member, namespace }: QuotaPlace): string {
  return `${member}/${namespace}`;
}
