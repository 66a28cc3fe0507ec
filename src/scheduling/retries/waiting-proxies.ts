import type { ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import { isGated } from "../../pods/pod-state.ts";
import { byPrecedence } from "../../pods/scheduling.ts";
import type { Clock } from "../../runtime/clock.ts";
import { LONG_RESTS, PacedResync, type PacedResyncOptions } from "../../runtime/paced-resync.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Memories } from "../memories.ts";
import { type QuotaPlace, QuotaQueues } from "./quota-queues.ts";
import type { Retries } from "./retries.ts";

export interface WaitingProxiesOptions {
  readonly clock: Clock;
  readonly memories: Memories;
  readonly retries: Pick<Retries, "hurry">;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly reconcile: (key: ObjectKey) => void;
  /** Reconciles many, after everything else. */
  readonly reconcileBehind: PacedResyncOptions<ObjectKey>["reconcile"];
}

// Delegates end all the time, so waiting proxies are reconciled together, this long after the first end.
const ROOM_DELAY_MS = 250;
const PLACED_DELAY_MS = 1000;
const FEW = 100;

/** Keeps the unbound proxies, and reconciles them when an event may let a member take them. */
export class WaitingProxies {
  /** Lets proxies that a quota refused ask one at a time. */
  readonly quotas: QuotaQueues;
  readonly #options: WaitingProxiesOptions;
  /** When each began to lack only a node; epoch ms. */
  readonly #since = new Map<ObjectKey, number>();
  readonly #resync: PacedResync<ObjectKey>;
  /** The next resync includes proxies that were not told why they wait. */
  #all = false;

  constructor(options: WaitingProxiesOptions) {
    this.#options = options;
    const { clock, reconcileBehind: reconcile } = options;
    this.quotas = new QuotaQueues(options);
    this.#resync = new PacedResync({ clock, reconcile, rests: LONG_RESTS, keys: () => this.#next() });
  }

  /** Adds an unbound proxy. While gates hold it, its time starts anew. */
  add(key: ObjectKey, proxy: Stored<Pod>): void {
    if (isGated(proxy) || !this.#since.has(key)) this.#since.set(key, this.#options.clock.now());
  }

  remove(key: ObjectKey): void {
    this.#since.delete(key);
  }

  /** Returns since when the proxy waits for a member; epoch ms. */
  since(key: ObjectKey): number | undefined {
    return this.#since.get(key);
  }

  *list(): Generator<readonly [ObjectKey, Stored<Pod>]> {
    for (const key of this.#since.keys()) {
      const proxy = this.#options.proxies.get(key);
      if (proxy !== undefined) yield [key, proxy];
    }
  }

  summary(): { readonly count: number; readonly oldestSeconds: number } {
    const now = this.#options.clock.now();
    let oldest = now;
    let count = 0;
    for (const [key, since] of this.#since) {
      const proxy = this.#options.proxies.get(key);
      if (proxy !== undefined && isGated(proxy)) continue;
      count += 1;
      oldest = Math.min(oldest, since);
    }
    return { count, oldestSeconds: (now - oldest) / 1000 };
  }

  /** Handles a change of members or of their nodes: any proxy may fit now. */
  onMembers(): void {
    // Each reconcile ranks all members, so many proxies are reconciled together.
    this.#ask(this.#since.size > FEW ? ROOM_DELAY_MS : 0);
  }

  /** Handles the end of a delegate: a proxy may have its room, and its part of a quota. */
  onEnded(place: QuotaPlace): void {
    this.quotas.onEnded(place);
    this.onRoom();
  }

  /** Handles room that may have become free in any member. */
  onRoom(): void {
    this.#ask(ROOM_DELAY_MS);
  }

  /** Handles a proxy that got or lost its place: an even spread or a limit may admit another. */
  onPlaces(): void {
    if (this.#since.size > 0) this.#resync.request(PLACED_DELAY_MS);
  }

  /** Handles a new connection to a member: it must show first what it has of the proxies. */
  onReconnected(member: string): void {
    for (const [, proxy] of this.list()) {
      // A gated proxy was given to no member.
      if (!isGated(proxy)) this.#options.memories.noteUnproven(proxy.metadata.uid, member);
    }
  }

  stop(): void {
    this.quotas.stop();
    this.#resync.stop();
  }

  #ask(delayMs: number): void {
    if (this.#since.size === 0) return;
    this.#all = true;
    this.#resync.request(delayMs);
  }

  /** Returns the proxies in order of precedence: the first has the choice. */
  #next(): readonly ObjectKey[] {
    const all = this.#all;
    this.#all = false;
    const hasReport = ({ metadata }: Stored<Pod>): boolean =>
      this.#options.memories.of(metadata.uid).reported !== undefined;
    return [...this.list()]
      .filter(([, proxy]) => all || hasReport(proxy))
      .sort(([, a], [, b]) => byPrecedence(a, b))
      .map(([key]) => key);
  }
}
