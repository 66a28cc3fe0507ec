import type { KubeEvent } from "../../api/kubernetes.ts";
import { setLatest } from "../../api/latest-entries.ts";
import { TokenBucket } from "../../kube/limits.ts";

// Twice the limit of client-go's EventSourceObjectSpamFilter for one source and object (25 at once, then one in five minutes): once for
// the kubelet, and once for scheduler, network and controllers together.
const BURST = 50;
const REFILL_MS = 2.5 * 60_000;
// Eight minutes of a hundred new pods per second, in about 12 MB. The pod without events for longest is forgotten first.
const KEPT = 50_000;

// A pod has four or five events: enough for a hundred new pods per second for half a minute, and for forty in the long run.
const PER_MEMBER = { perSecond: 200, burst: 10_000 };

interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

/** Limits a member's events by the host's uid of the pod: a hostile member may write any source and uid into them. */
export class SpamFilter {
  readonly #buckets = new Map<string, Bucket>();
  readonly #members = new Map<string, TokenBucket>();

  /** Reports whether the event may be written, and counts it then. */
  accepts(member: string, { involvedObject, type }: KubeEvent, now: number): boolean {
    // Kubernetes has two types, but a member may write any.
    const key = `${member} ${involvedObject.uid} ${type === "Warning"}`;
    return this.#take(key, now) && this.#memberOf(member, now).reserve(now, 0) !== undefined;
  }

  #take(key: string, now: number): boolean {
    const { tokens, at } = this.#buckets.get(key) ?? { tokens: BURST, at: now };
    const left = Math.min(BURST, tokens + (now - at) / REFILL_MS);
    setLatest(this.#buckets, key, { tokens: left < 1 ? left : left - 1, at: now }, KEPT);
    return left >= 1;
  }

  #memberOf(member: string, now: number): TokenBucket {
    const bucket = this.#members.get(member) ?? new TokenBucket(PER_MEMBER.perSecond, PER_MEMBER.burst, now);
    this.#members.set(member, bucket);
    return bucket;
  }
}
