import type { KubeEvent } from "../../api/kubernetes.ts";
import { TokenBucket } from "../../kube/limits.ts";

// Twice what client-go's EventSourceObjectSpamFilter lets one source say of one object, 25 at once and one in five minutes, by
// which kubelets themselves are limited: that, and as much by the scheduler, networks and controllers together.
const BURST = 50;
const REFILL_MS = 2.5 * 60_000;
// Eight minutes of a hundred new pods a second, in some 12 MB. Who has been silent for longest is forgotten first, and
// starts anew.
const KEPT = 50_000;

// A pod has four or five. A hundred new pods a second last for half a minute, and forty for good.
const PER_MEMBER = { perSecond: 200, burst: 10_000 };

interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

/**
 * Limits what a member may tell: of one pod 50 events at once and then one in two and a half minutes, of each type, and 200 a
 * second of all. Nothing that the member writes is counted by: it may name a new source in each event, as it may give each a
 * new uid. The uid of the pod is the host's.
 */
export class SpamFilter {
  readonly #buckets = new Map<string, Bucket>();
  /** By member. Names of Clusters, which administrators give: few. */
  readonly #members = new Map<string, TokenBucket>();

  /** True when an event about a proxy may be told; it counts then. */
  accepts(member: string, { involvedObject, type }: KubeEvent, now: number): boolean {
    // Kubernetes knows two types; a member may write any.
    const key = `${member} ${involvedObject.uid} ${type === "Warning"}`;
    return this.#take(key, now) && this.#memberOf(member, now).reserve(now, 0) !== undefined;
  }

  #take(key: string, now: number): boolean {
    const { tokens, at } = this.#buckets.get(key) ?? { tokens: BURST, at: now };
    const left = Math.min(BURST, tokens + (now - at) / REFILL_MS);
    this.#buckets.delete(key);
    this.#buckets.set(key, { tokens: left < 1 ? left : left - 1, at: now });
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= KEPT) break;
      this.#buckets.delete(oldest);
    }
    return left >= 1;
  }

  #memberOf(member: string, now: number): TokenBucket {
    const known = this.#members.get(member);
    if (known !== undefined) return known;
    const bucket = new TokenBucket(PER_MEMBER.perSecond, PER_MEMBER.burst, now);
    this.#members.set(member, bucket);
    return bucket;
  }
}
