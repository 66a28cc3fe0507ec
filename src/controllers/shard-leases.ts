import { LEADERLESS_ANNOTATION, SHARDS_ANNOTATION, SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { Lease, Stored } from "../api/kubernetes.ts";
import { leaseOf, REPLICA_LEASE_PREFIX, type Shard, shardOfLease } from "../api/shards.ts";
import type { ClusterClient } from "../kube/client.ts";
import { ignoring } from "../kube/errors.ts";
import { listAll } from "../kube/list.ts";
import { leases } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import { type Interval, parseLeaderlessIntervals } from "../runtime/leaderless-intervals.ts";

// A replica that is killed leaves its Lease, and may come back under its name.
const FORGOTTEN_MS = 60 * 60_000;

/** The Leases of shards and of the replicas that share them out, as they were last read. */
export class ShardLeases {
  readonly #options: ShardLeasesOptions;
  readonly #seen = new Map<string, { readonly version: string; readonly at: number }>();
  #leases: readonly Stored<Lease>[] = [];

  constructor(options: ShardLeasesOptions) {
    this.#options = options;
  }

  /** Rejects with KubeError. */
  async read(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const found = await listAll(client, leases, { namespace: SYSTEM_NAMESPACE, signal });
    for (const { metadata } of found) {
      const version = metadata.resourceVersion;
      if (this.#seen.get(metadata.name)?.version !== version)
        this.#seen.set(metadata.name, { version, at: clock.now() });
    }
    this.#leases = found;
  }

  /** Returns the holder of each shard, whatever number of shards it counts. */
  holders(count: number): readonly (string | undefined)[] {
    const held = new Map(this.#leases.map((lease) => [lease.metadata.name, this.#holder(lease)]));
    return Array.from({ length: count }, (_, index) => held.get(leaseOf(index)));
  }

  /** Returns the replicas that count as many shards. */
  replicas(count: number): readonly string[] {
    return this.#leases.flatMap((lease) =>
      lease.metadata.name.startsWith(REPLICA_LEASE_PREFIX) && countOf(lease) === count
        ? (this.#holder(lease) ?? [])
        : [],
    );
  }

  /** Returns a Lease under which a holder has namespaces in hand by another number of shards. */
  heldByOtherCount(count: number): string | undefined {
    return this.#shards().find((lease) => countOf(lease) !== count && this.#holder(lease) !== undefined)?.metadata.name;
  }

  /** Returns the times without a leader before the shard's Lease was made: the first shard's holder led it then. */
  earlier({ index }: Shard): readonly Interval[] {
    const [first, own] = [0, index].map((at) => this.#shards().find(({ metadata }) => metadata.name === leaseOf(at)));
    const made = Date.parse(own?.metadata.creationTimestamp ?? "");
    const all = parseLeaderlessIntervals(first?.metadata.annotations?.[LEADERLESS_ANNOTATION]);
    return index === 0 ? [] : all.filter(([, to]) => to <= made);
  }

  /** Deletes the Leases of shards that are no more, and of replicas that stopped, or were killed long ago. Rejects with KubeError. */
  async clean(count: number, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    for (const { metadata, spec } of this.#leases) {
      const { name, uid, resourceVersion } = metadata;
      const isOver = name.startsWith(REPLICA_LEASE_PREFIX)
        ? spec?.holderIdentity === "" || Date.parse(spec?.renewTime ?? "") < clock.wall() - FORGOTTEN_MS
        : (shardOfLease(name) ?? 0) >= count;
      const options = { uid, resourceVersion, signal };
      if (isOver) {
        await ignoring(client.delete(leases, { namespace: SYSTEM_NAMESPACE, name }, options), "NotFound", "Conflict");
      }
    }
  }

  #shards(): readonly Stored<Lease>[] {
    return this.#leases.filter(({ metadata }) => shardOfLease(metadata.name) !== undefined);
  }

  /** Trusts no remote clock: a Lease that was not renewed for its duration, as seen here, is free. */
  #holder({ metadata, spec }: Stored<Lease>): string | undefined {
    const { clock, leaseDurationMs } = this.#options;
    const heldMs = Math.max(leaseDurationMs, (spec?.leaseDurationSeconds ?? 0) * 1000);
    const isOver = clock.now() - (this.#seen.get(metadata.name)?.at ?? 0) >= heldMs;
    return isOver || spec?.holderIdentity === "" ? undefined : spec?.holderIdentity;
  }
}

export interface ShardLeasesOptions {
  readonly client: ClusterClient;
  readonly leaseDurationMs: number;
  readonly clock: Clock;
}

function countOf({ metadata }: Stored<Lease>): number {
  return Number(metadata.annotations?.[SHARDS_ANNOTATION] ?? 1);
}
