import { setLatest } from "../../api/latest-entries.ts";
import { TokenBucket } from "../../kube/limits.ts";

// A team behind one Ingress, which nothing trusts, signs in at once in the morning; an attacker gets few guesses.
const BURST = 20;
const ATTEMPT_AGAIN_AFTER_MS = 3_000;
const MOST_ADDRESSES = 10_000;

/** Limits how often tokens come from one address (`networkOf`), since each asks the API server. */
export class SignInRate {
  /** In the order of their last use. */
  readonly #buckets = new Map<string, TokenBucket>();

  /** Counts an attempt. Returns the seconds after which the next one is taken; undefined if this one is. */
  refusedFor(address: string, now: number): number | undefined {
    const bucket = this.#buckets.get(address) ?? new TokenBucket(1_000 / ATTEMPT_AGAIN_AFTER_MS, BURST, now);
    setLatest(this.#buckets, address, bucket, MOST_ADDRESSES);
    return bucket.reserve(now, 0) === undefined ? ATTEMPT_AGAIN_AFTER_MS / 1_000 : undefined;
  }
}
