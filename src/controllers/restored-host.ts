import { type ObjectKey, type ObjectMeta, objectKey } from "../api/kubernetes.ts";
import type { Registry } from "../clusters/registry.ts";
import { KubeError } from "../kube/errors.ts";
import type { LeaderElector } from "../runtime/leader-election.ts";
import { wasLeaderless } from "../runtime/leaderless-intervals.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { MemberMetrics } from "../telemetry/members.ts";
import type { Emitter } from "./events.ts";

export interface RestoredHostOptions {
  /** Undefined where no leader is elected. */
  readonly election: Pick<LeaderElector, "leaderless" | "confirm"> | undefined;
  readonly log: Logger;
}

/** Keeps objects whose work may be wanted until an operator has looked: docs/architecture.md#restored-clusters. */
export class RestoredHost {
  readonly #options: RestoredHostOptions;
  readonly #logged = new Set<string>();

  constructor(options: RestoredHostOptions) {
    this.#options = options;
  }

  /** Logs each object once, as `kept WHAT`. */
  keeps(member: string, what: string, { namespace, name, uid = "", creationTimestamp: created }: ObjectMeta): boolean {
    const { election, log } = this.#options;
    if (!wasLeaderless(election?.leaderless ?? [], created)) return false;
    if (!this.#logged.has(uid)) {
      this.#logged.add(uid);
      const why = "it was created while no controller led, so the host was restored from a backup";
      log.warn({ member, namespace, name, uid, created }, `kept ${what}: ${why}`);
    }
    return true;
  }

  /** Resolves when the host has the Lease as last renewed: absence on it proves deletion. Else rejects with NotSent. */
  async confirm(member: string, resource: string, signal: AbortSignal): Promise<void> {
    if ((await this.#options.election?.confirm(signal)) ?? true) return;
    const fields = { code: "NotSent", cluster: member, verb: "delete", resource } as const;
    throw new KubeError("the host does not have the Lease as this leader renewed it", fields);
  }
}

export interface KeptDelegatesOptions {
  readonly restoredHost: Pick<RestoredHost, "keeps">;
  readonly registry: Pick<Registry, "member">;
  readonly metrics?: { readonly members: Pick<MemberMetrics, "countHeld"> };
  readonly events: Emitter;
}

/** Delegates that a restored host does not know and keeps, counted for metrics and the status of Clusters. */
export class KeptDelegates {
  readonly #options: KeptDelegatesOptions;
  readonly #held = new Map<string, { readonly member: string; readonly key: ObjectKey }>();

  constructor(options: KeptDelegatesOptions) {
    this.#options = options;
  }

  /** Counts each delegate once. */
  keeps(name: string, key: ObjectKey, uid: string): boolean {
    const { restoredHost, registry, metrics, events } = this.#options;
    const delegate = registry.member(name)?.delegates.get(key);
    if (delegate?.metadata.uid !== uid) return false;
    if (!restoredHost.keeps(name, "a delegate without a proxy", delegate.metadata)) return false;
    if (!this.#held.has(uid)) {
      this.#held.set(uid, { member: name, key: objectKey(delegate.metadata) });
      metrics?.members.countHeld(name);
      events.emit("kept", name);
    }
    return true;
  }

  /** Returns how many of them the member still has, as far as they were found. */
  countIn(name: string): number {
    const member = this.#options.registry.member(name);
    const there = [...this.#held].filter(
      ([uid, one]) => one.member === name && member?.delegates.get(one.key)?.metadata.uid === uid,
    );
    return there.length;
  }
}
