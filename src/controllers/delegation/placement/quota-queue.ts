import type { ObjectKey, Pod, Stored } from "../../../api/kubernetes.ts";
import { isLive } from "../../../pods/phase.ts";
import { byPrecedence } from "../../../pods/scheduling.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { Memory } from "../model/memory.ts";

/** What the queues of pods that wait for quotas are kept by. */
export interface QuotaQueueOptions {
  readonly clock: Pick<Clock, "now" | "after">;
  /** The proxy as the host last showed it. */
  readonly proxyOf: (key: ObjectKey) => Stored<Pod> | undefined;
  readonly memoryOf: (proxyUid: string) => Memory;
  /** Has the pod ask the member before its rest there is over. */
  readonly reopen: (key: ObjectKey, proxyUid: string, member: string) => void;
}

interface Waiting {
  readonly key: ObjectKey;
  /** It could have asked and did not: it is passed over until then; epoch ms. */
  passesUntil: number;
  /** It was refused in its turn: whoever asks for less comes before it until then; epoch ms. */
  behindUntil: number;
}

interface Candidate {
  readonly uid: string;
  readonly key: ObjectKey;
  readonly proxy: Stored<Pod>;
  readonly behind: boolean;
}

// Most controller managers have counted a quota anew by then.
const COUNTS_MS = 250;
// One that answers watches in time has done so by then, and is asked now and then until then.
const LAGS_MS = 5000;
const AGAIN_MS = 2000;
// Whose turn it is has been looked at by then.
const LOOK_MS = 1000;
// The answer, or what goes before it in another member, takes no longer.
const TURN_MS = 60_000;
const PASSES_MS = 30_000;

/** Pods that wait for the quotas of one namespace in a member: when something there has ended, they ask one at a time until one is refused. */
export class QuotaQueue {
  readonly #member: string;
  readonly #options: QuotaQueueOptions;
  /** By proxy uid. */
  readonly #pods = new Map<string, Waiting>();
  /** When something there last ended; epoch ms. */
  #endedAt = Number.NEGATIVE_INFINITY;
  #turn: { readonly uid: string; readonly since: number } | undefined;
  #timer: Timer | undefined;
  /** When the next turn begins, unless one is under way; epoch ms. */
  #nextAt = 0;

  constructor(member: string, options: QuotaQueueOptions) {
    this.#member = member;
    this.#options = options;
  }

  get size(): number {
    return this.#pods.size;
  }

  /** A quota had no room for the pod. */
  refused(uid: string, key: ObjectKey): void {
    const waiting = this.#pods.get(uid) ?? { key, passesUntil: 0, behindUntil: 0 };
    this.#pods.set(uid, waiting);
    if (this.#turn?.uid !== uid) return;
    const { since } = this.#turn;
    const now = this.#options.clock.now();
    this.stop();
    waiting.behindUntil = now + LAGS_MS;
    // What has ended may not have been counted yet.
    const mayLag = now < this.#endedAt + LAGS_MS;
    if (mayLag || since <= this.#endedAt) this.#nextAfter(AGAIN_MS);
  }

  /** A quota had room for this pod, which may not have waited: there may be more. */
  accepted(uid: string): void {
    this.remove(uid);
    if (this.#turn === undefined && this.#pods.size > 0) this.#nextAfter(0);
  }

  /** The pod does not wait here any more. */
  remove(uid: string): void {
    this.#pods.delete(uid);
    const hadTurn = this.#turn?.uid === uid;
    if (hadTurn || this.#pods.size === 0) this.stop();
    if (hadTurn && this.#pods.size > 0) this.#nextAfter(0);
  }

  /** Something there has ended. */
  onEnded(): void {
    this.#endedAt = this.#options.clock.now();
    if (this.#turn === undefined) this.#nextAfter(COUNTS_MS);
  }

  /** Nobody is asked to ask any more, until something there ends. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#turn = undefined;
  }

  /** The next one asks after so long, unless it is to ask before that. */
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
    this.#timer = this.#options.clock.after(LOOK_MS, () => this.#look());
    this.#options.reopen(key, uid, this.#member);
  }

  /** One that is kept from asking by something else holds up nobody. */
  #look(): void {
    const { clock, memoryOf } = this.#options;
    this.#timer = undefined;
    if (this.#turn === undefined) return;
    const { uid, since } = this.#turn;
    const { promised, attempts } = memoryOf(uid);
    const now = clock.now();
    const asks = promised === this.#member || attempts[this.#member]?.refusal === undefined;
    if (asks && now < since + TURN_MS) {
      this.#timer = clock.after(LOOK_MS, () => this.#look());
      return;
    }
    this.#turn = undefined;
    const waiting = this.#pods.get(uid);
    if (waiting !== undefined) waiting.passesUntil = now + PASSES_MS;
    this.#begin();
  }

  /** As in a scheduler's queue, where what does not fit holds up nobody. */
  #first(): Candidate | undefined {
    const { clock, proxyOf } = this.#options;
    const now = clock.now();
    let best: Candidate | undefined;
    for (const [uid, { key, passesUntil, behindUntil }] of this.#pods) {
      const proxy = proxyOf(key);
      if (proxy?.metadata.uid !== uid || !isLive(proxy) || now < passesUntil) continue;
      const candidate = { uid, key, proxy, behind: now < behindUntil };
      if (best === undefined || isBefore(candidate, best)) best = candidate;
    }
    return best;
  }
}

function isBefore(a: Candidate, b: Candidate): boolean {
  return a.behind === b.behind ? byPrecedence(a.proxy, b.proxy) < 0 : b.behind;
}
