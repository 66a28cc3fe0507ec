import type { KubeEvent } from "../../api/kubernetes.ts";
import { setUntilEnded } from "../../api/latest-entries.ts";
import { TokenBucket } from "../../kube/limits.ts";

// Twice the limit of client-go's EventSourceObjectSpamFilter for one source and object (25 at once, then one in five minutes): once for
// the kubelet, and once for scheduler, network and controllers together.
const BURST = 50;
const REFILL_MS = 2.5 * 60_000;
// Eight minutes of a hundred new pods per second, in about 10 MB. The pod without events for longest is forgotten first.
const KEPT = 50_000;

// A pod has four or five events: enough for a hundred new pods per second for half a minute, and for forty in the long run.
const PER_MEMBER = { perSecond: 200, burst: 10_000 };

/** Limits a member's events by the host's uid of the pod: a hostile member may write any source and uid into them. */
export class SpamFilter {
  /** When the bucket of a pod and type is full again; ms. One that is full is as good as none. */
  readonly #fullAt = new Map<string, number>();
  readonly #members = new Map<string, TokenBucket>();

  /** Pods and types that are remembered. */
  get size(): number {
    return this.#fullAt.size;
  }

  /** Reports whether the event may be written, and counts it then. */
  accepts(member: string, { involvedObject, type }: KubeEvent, now: number): boolean {
    // Kubernetes has two types, but a member may write any.
    const key = [member, involvedObject.uid, type === "Warning"].join(" ");
    return this.#take(key, now) && this.#memberOf(member, now).reserve(now, 0) !== undefined;
  }

  #take(key: string, now: number): boolean {
    const fullAt = Math.max(now, this.#fullAt.get(key) ?? now);
    const accepts = fullAt - now <= (BURST - 1) * REFILL_MS;
    setUntilEnded(this.#fullAt, key, accepts ? fullAt + REFILL_MS : fullAt, (at) => at <= now);
    const [oldest] = this.#fullAt.keys();
    if (oldest !== undefined && this.#fullAt.size > KEPT) this.#fullAt.delete(oldest);
    return accepts;
  }

  #memberOf(member: string, now: number): TokenBucket {
    const bucket = this.#members.get(member) ?? new TokenBucket(PER_MEMBER.perSecond, PER_MEMBER.burst, now);
    this.#members.set(member, bucket);
    return bucket;
  }
}
