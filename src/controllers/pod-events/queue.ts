import type { KubeEvent, ObjectKey } from "../../api/kubernetes.ts";

export interface Pending {
  readonly member: string;
  readonly event: KubeEvent;
  /** The host may not have the event yet. */
  readonly isNew: boolean;
  readonly attempts: number;
}

// About 20 seconds of a hundred new pods per second. Further events are dropped, as a kubelet's are.
const MOST_BYTES = 10 * 2 ** 20;
// Heap bytes of an event beside its text, from above (measured with Node.js 24).
const EVENT_BYTES = 512;

/** The events of one member by key, the oldest first. */
interface Share {
  readonly events: Map<ObjectKey, { readonly pending: Pending; readonly bytes: number }>;
  bytes: number;
}

/** A fair queue: if it is full, the member with most events loses its oldest, so that a flood of one drops no other's. */
export class EventQueue {
  readonly #shares = new Map<string, Share>();
  #size = 0;
  #bytes = 0;

  get size(): number {
    return this.#size;
  }

  get(member: string, key: ObjectKey): Pending | undefined {
    return this.#shares.get(member)?.events.get(key)?.pending;
  }

  /** Returns the number of events that were dropped for this one. */
  put(key: ObjectKey, pending: Pending): number {
    const { member } = pending;
    const share = this.#shares.get(member) ?? { events: new Map(), bytes: 0 };
    this.#shares.set(member, share);
    const bytes = JSON.stringify(pending.event).length + EVENT_BYTES;
    const known = share.events.get(key);
    share.events.set(key, { pending, bytes });
    this.#account(share, bytes - (known?.bytes ?? 0), known === undefined ? 1 : 0);
    let lost = 0;
    for (; this.#bytes > MOST_BYTES; lost += 1) this.#dropOldest();
    return lost;
  }

  next(
    mayBeWritten: (pending: Pending) => boolean,
  ): { readonly key: ObjectKey; readonly pending: Pending } | undefined {
    for (const [member, { events }] of this.#shares) {
      for (const [key, { pending }] of events) {
        if (!mayBeWritten(pending)) continue;
        this.#remove(member, key);
        this.#endTurn(member);
        return { key, pending };
      }
    }
    return undefined;
  }

  clear(): void {
    this.#shares.clear();
    this.#size = 0;
    this.#bytes = 0;
  }

  #dropOldest(): void {
    let fullest: readonly [string, Share] | undefined;
    for (const each of this.#shares) if (each[1].bytes > (fullest?.[1].bytes ?? 0)) fullest = each;
    if (fullest === undefined) return;
    const [member, { events }] = fullest;
    for (const oldest of events.keys()) {
      this.#remove(member, oldest);
      return;
    }
  }

  #remove(member: string, key: ObjectKey): void {
    const share = this.#shares.get(member);
    const known = share?.events.get(key);
    if (share === undefined || known === undefined) return;
    share.events.delete(key);
    this.#account(share, -known.bytes, -1);
    if (share.events.size === 0) this.#shares.delete(member);
  }

  #endTurn(member: string): void {
    const share = this.#shares.get(member);
    if (share === undefined) return;
    this.#shares.delete(member);
    this.#shares.set(member, share);
  }

  #account(share: Share, bytes: number, events: number): void {
    share.bytes += bytes;
    this.#bytes += bytes;
    this.#size += events;
  }
}
