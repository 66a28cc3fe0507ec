import type { ObjectKey } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { wasLeaderless } from "../../../runtime/leaderless-intervals.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { DelegationOptions } from "../options.ts";

/**
 * Keeps delegates whose proxies the host lost when it was restored from a backup. Their work may be wanted, so they stay until an
 * operator has looked.
 */
export class HeldDelegates {
  readonly #options: Pick<DelegationOptions, "leaderless" | "metrics" | "registry" | "onBound">;
  readonly #told = new Map<string, { readonly member: string; readonly key: ObjectKey }>();

  constructor(options: Pick<DelegationOptions, "leaderless" | "metrics" | "registry" | "onBound">) {
    this.#options = options;
  }

  /** Reports whether the delegate with this uid is kept. Logs each once. */
  keeps(member: Member | undefined, key: ObjectKey, uid: string, log: Logger): boolean {
    const delegate = member?.delegates.get(key);
    if (member === undefined || delegate?.metadata.uid !== uid) return false;
    const { creationTimestamp: created } = delegate.metadata;
    if (!wasLeaderless(this.#options.leaderless, created)) return false;
    if (!this.#told.has(uid)) {
      this.#told.set(uid, { member: member.name, key });
      this.#options.metrics?.members.countHeld(member.name);
      this.#options.onBound(member.name);
      const message =
        "kept a delegate without a proxy: it was made while nobody led, so the host was restored from a backup";
      log.warn({ member: member.name, uid, created }, message);
    }
    return true;
  }

  /** Returns how many of them the member still has, as far as they were found. */
  countIn(name: string): number {
    const member = this.#options.registry.member(name);
    const there = [...this.#told].filter(
      ([uid, one]) => one.member === name && member?.delegates.get(one.key)?.metadata.uid === uid,
    );
    return there.length;
  }
}
