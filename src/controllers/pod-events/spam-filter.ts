import type { KubeEvent } from "../../api/kubernetes.ts";

// The numbers of client-go's EventSourceObjectSpamFilter, by which kubelets themselves are limited.
const BURST = 25;
const REFILL_MS = 5 * 60_000;
// Four minutes of a hundred new pods a second, at two sources each, in some 12 MB. Who has been silent for longest is
// forgotten first, and starts anew.
const KEPT = 50_000;

interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

/** Limits what one source may tell of one pod: 25 events at once, and then one in five minutes. */
export class SpamFilter {
  readonly #buckets = new Map<string, Bucket>();

  /** True when the event may be told; it counts then. */
  accepts({ involvedObject, source, reportingComponent, type }: KubeEvent, now: number): boolean {
    const component = source?.component ?? reportingComponent ?? "";
    const key = `${involvedObject.uid} ${component} ${source?.host ?? ""} ${type}`;
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
}
