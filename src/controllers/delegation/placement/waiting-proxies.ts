import type { ObjectKey, Pod, Stored } from "../../../api/kubernetes.ts";
import { isGated } from "../../../pods/phase.ts";
import { byPrecedence } from "../../../pods/scheduling.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { PacedResync, type PacedResyncOptions } from "../../../runtime/paced-resync.ts";
import type { Memories } from "../model/memory.ts";

/** What waiting proxies are kept by. */
export interface WaitingProxiesOptions {
  readonly clock: Clock;
  readonly memories: Memories;
  /** The proxy as the host last showed it. */
  readonly proxyOf: (key: ObjectKey) => Stored<Pod> | undefined;
  /** Has proxies looked at again, behind all that has news of its own. */
  readonly look: PacedResyncOptions<ObjectKey>["reconcile"];
}

// Delegates end all the time; proxies that wait are looked at together, this long after the first of those ends.
const ROOM_DELAY_MS = 250;
const PLACED_DELAY_MS = 1000;
const FEW = 100;

/** Proxies that have no node yet. They are looked at again when something has changed that may let a member take them. */
export class WaitingProxies {
  readonly #options: WaitingProxiesOptions;
  /** Since when nothing but a node is missing; epoch ms. */
  readonly #since = new Map<ObjectKey, number>();
  readonly #resync: PacedResync<ObjectKey>;
  /** The next resync looks at all of them, and not only at those that were told why they wait. */
  #all = false;

  constructor(options: WaitingProxiesOptions) {
    this.#options = options;
    const { clock, look } = options;
    this.#resync = new PacedResync({ clock, reconcile: look, keys: () => this.#next() });
  }

  /** A proxy without a node is there; one with scheduling gates waits for those. */
  add(key: ObjectKey, proxy: Stored<Pod>): void {
    if (isGated(proxy) || !this.#since.has(key)) this.#since.set(key, this.#options.clock.now());
  }

  /** The proxy has a node, or is gone. */
  remove(key: ObjectKey): void {
    this.#since.delete(key);
  }

  /** Since when the proxy waits for a member; epoch ms. */
  since(key: ObjectKey): number | undefined {
    return this.#since.get(key);
  }

  /** Those that are still there. */
  *list(): Generator<readonly [ObjectKey, Stored<Pod>]> {
    for (const key of this.#since.keys()) {
      const proxy = this.#options.proxyOf(key);
      if (proxy !== undefined) yield [key, proxy];
    }
  }

  /** How many nobody has taken yet, and how long the oldest of them has waited, for metrics. */
  summary(): { readonly count: number; readonly oldestSeconds: number } {
    const now = this.#options.clock.now();
    let oldest = now;
    let count = 0;
    for (const [key, since] of this.#since) {
      const proxy = this.#options.proxyOf(key);
      if (proxy !== undefined && isGated(proxy)) continue;
      count += 1;
      oldest = Math.min(oldest, since);
    }
    return { count, oldestSeconds: (now - oldest) / 1000 };
  }

  /** Members' nodes, or what is said of members, have changed: any may fit now. */
  onCapacity(): void {
    // Each look at one is a look at all members: what many of them are to hear of, they hear together.
    this.#ask(this.#since.size > FEW ? ROOM_DELAY_MS : 0);
  }

  /** A delegate has ended: one may have its place. */
  onRoom(): void {
    this.#ask(ROOM_DELAY_MS);
  }

  /** A proxy has its place, or has it no more: one that was told why it waits may now have one (an even spread, a limit). */
  onPlaces(): void {
    if (this.#since.size > 0) this.#resync.request(PLACED_DELAY_MS);
  }

  /** What was read of a member counts no more: its new connection must show first what it has of them. */
  onReconnected(member: string): void {
    for (const [, proxy] of this.list()) {
      // One that is gated still was given to nobody.
      if (!isGated(proxy)) this.#options.memories.noteUnproven(proxy.metadata.uid, member);
    }
  }

  stop(): void {
    this.#resync.stop();
  }

  #ask(delayMs: number): void {
    if (this.#since.size === 0) return;
    this.#all = true;
    this.#resync.request(delayMs);
  }

  /** Whoever is looked at first has the choice of what has become free. */
  #next(): readonly ObjectKey[] {
    const all = this.#all;
    this.#all = false;
    const wasTold = ({ metadata }: Stored<Pod>): boolean => this.#options.memories.of(metadata.uid).told !== undefined;
    return [...this.list()]
      .filter(([, proxy]) => all || wasTold(proxy))
      .sort(([, a], [, b]) => byPrecedence(a, b))
      .map(([key]) => key);
  }
}
