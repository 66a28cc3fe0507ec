import type { ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import { isLive } from "../../pods/pod-state.ts";
import { byPrecedence } from "../../pods/scheduling.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Memories } from "../memories.ts";
import type { Retries } from "./retries.ts";

export interface QuotaQueueOptions {
  readonly clock: Pick<Clock, "now" | "after">;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly memories: Pick<Memories, "of">;
  readonly retries: Pick<Retries, "hurry">;
  readonly reconcile: (key: ObjectKey) => void;
}

interface Waiting {
  readonly key: ObjectKey;
  /** The pod did not use its turn, and is skipped until then; epoch ms. */
  skippedUntil: number;
  /** The quota refused the pod in its turn: pods with smaller requests come first until then; epoch ms. */
  behindUntil: number;
}

interface Candidate {
  readonly uid: string;
  readonly key: ObjectKey;
  readonly proxy: Stored<Pod>;
  readonly behind: boolean;
}

// Most controller managers have recounted a quota by then.
const COUNTS_MS = 250;
// A controller manager that keeps up has recounted by then, and is asked every QUOTA_AGAIN_MS until then.
const QUOTA_LAGS_MS = 5000;
const QUOTA_AGAIN_MS = 2000;
// The pod whose turn it is has been reconciled by then.
const QUOTA_LOOK_MS = 1000;
// Longest wait for the answer of the pod whose turn it is.
const QUOTA_TURN_MS = 60_000;
const SKIPPED_MS = 30_000;

/** Pods that wait for the quotas of one namespace in a member. When a pod there ends, they ask one at a time until one is refused. */
class QuotaQueue {
  readonly #member: string;
  readonly #options: QuotaQueueOptions;
  readonly #pods = new Map<string, Waiting>();
  /** When a pod in the member last ended; epoch ms. */
  #endedAt = Number.NEGATIVE_INFINITY;
  #turn: { readonly uid: string; readonly since: number } | undefined;
  #timer: Timer | undefined;
  /** When the next turn begins if none is under way; epoch ms. */
  #nextAt = 0;

  constructor(member: string, options: QuotaQueueOptions) {
    this.#member = member;
    this.#options = options;
  }

  get size(): number {
    return this.#pods.size;
  }

  refused(uid: string, key: ObjectKey): void {
    const waiting = this.#pods.get(uid) ?? { key, skippedUntil: 0, behindUntil: 0 };
    this.#pods.set(uid, waiting);
    if (this.#turn?.uid !== uid) return;
    const { since } = this.#turn;
    const now = this.#options.clock.now();
    this.stop();
    waiting.behindUntil = now + QUOTA_LAGS_MS;
    // The quota may not count the end yet.
    const mayLag = now < this.#endedAt + QUOTA_LAGS_MS;
    if (mayLag || since <= this.#endedAt) this.#nextAfter(QUOTA_AGAIN_MS);
  }

  /** Removes a pod that the quota admitted: there may be more room. */
  accepted(uid: string): void {
    this.remove(uid);
    if (this.#turn === undefined && this.#pods.size > 0) this.#nextAfter(0);
  }

  remove(uid: string): void {
    this.#pods.delete(uid);
    const hadTurn = this.#turn?.uid === uid;
    if (hadTurn || this.#pods.size === 0) this.stop();
    if (hadTurn && this.#pods.size > 0) this.#nextAfter(0);
  }

  onEnded(): void {
    this.#endedAt = this.#options.clock.now();
    if (this.#turn === undefined) this.#nextAfter(COUNTS_MS);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#turn = undefined;
  }

  #nextAfter(delayMs: number): void {
    const at = this.#options.clock.now() + delayMs;
    if (this.#timer !== undefined && this.#nextAt <= at) return;
    this.#timer?.cancel();
    this.#nextAt = at;
    this.#timer = this.#options.clock.after(delayMs, () => this.#begin());
  }

  #begin(): void {
    this.#timer = undefined;
    const first = this.#first();
    if (first === undefined) return;
    const { uid, key } = first;
    this.#turn = { uid, since: this.#options.clock.now() };
    this.#timer = this.#options.clock.after(QUOTA_LOOK_MS, () => this.#look());
    // The pod asks before its backoff is over.
    this.#options.retries.hurry(uid, this.#member);
    this.#options.reconcile(key);
  }

  /** Passes the turn on from a pod that does not ask. */
  #look(): void {
    const { clock, memories } = this.#options;
    this.#timer = undefined;
    if (this.#turn === undefined) return;
    const { uid, since } = this.#turn;
    const { reserved, attempts } = memories.of(uid);
    const now = clock.now();
    const asks = reserved === this.#member || attempts[this.#member]?.refusal === undefined;
    if (asks && now < since + QUOTA_TURN_MS) {
      this.#timer = clock.after(QUOTA_LOOK_MS, () => this.#look());
      return;
    }
    this.#turn = undefined;
    const waiting = this.#pods.get(uid);
    if (waiting !== undefined) waiting.skippedUntil = now + SKIPPED_MS;
    this.#begin();
  }

  #first(): Candidate | undefined {
    const { clock, proxies } = this.#options;
    const now = clock.now();
    let best: Candidate | undefined;
    for (const [uid, { key, skippedUntil, behindUntil }] of this.#pods) {
      const proxy = proxies.get(key);
      if (proxy?.metadata.uid !== uid || !isLive(proxy) || now < skippedUntil) continue;
      const candidate = { uid, key, proxy, behind: now < behindUntil };
      if (best === undefined || isBefore(candidate, best)) best = candidate;
    }
    return best;
  }
}

function isBefore(a: Candidate, b: Candidate): boolean {
  return a.behind === b.behind ? byPrecedence(a.proxy, b.proxy) < 0 : b.behind;
}

export interface QuotaPlace {
  readonly member: string;
  readonly namespace: string;
}

/** Pods that members refused because a quota was full. The end of a pod in the member lets them ask sooner, one at a time. */
export class QuotaQueues {
  readonly #options: QuotaQueueOptions;
  readonly #queues = new Map<string, QuotaQueue>();

  constructor(options: QuotaQueueOptions) {
    this.#options = options;
  }

  refused(place: QuotaPlace, proxyUid: string, key: ObjectKey): void {
    // A pod that went while it asked would stay in the queue.
    if (this.#options.proxies.get(key)?.metadata.uid !== proxyUid) return;
    const id = idOf(place);
    const queue = this.#queues.get(id) ?? new QuotaQueue(place.member, this.#options);
    this.#queues.set(id, queue);
    queue.refused(proxyUid, key);
  }

  accepted(place: QuotaPlace, proxyUid: string): void {
    this.#change(idOf(place), (queue) => queue.accepted(proxyUid));
  }

  onEnded(place: QuotaPlace): void {
    this.#change(idOf(place), (queue) => queue.onEnded());
  }

  leave(proxyUid: string): void {
    for (const id of this.#queues.keys()) this.#change(id, (queue) => queue.remove(proxyUid));
  }

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
