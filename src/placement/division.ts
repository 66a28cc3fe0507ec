import { byName } from "../api/json.ts";
import { preferencesFor, type SchedulingPreferences } from "../api/preferences.ts";

export type Replicas = Readonly<Record<string, number>>;

export interface DivideInput {
  readonly total: number;
  readonly preferences: SchedulingPreferences;
  readonly clusters: readonly string[];
  /** Undefined means no limit. */
  readonly capacities?: Replicas;
  /** `namespace/name` of the workload. Orders clusters of equal weight, so that single replicas spread. */
  readonly key: string;
}

export interface Division {
  readonly replicas: Replicas;
  readonly shortfall: Replicas;
}

/** Divides replicas like KubeFed's planner with `rebalance`, but one replica more never takes one from a cluster. */
export function divide(input: DivideInput): Division {
  const { total, clusters, capacities = byName() } = input;
  const replicas = take(shares(input, capacities), total);
  const shortfall: Record<string, number> = byName();
  if (Object.keys(capacities).length > 0) {
    // `minReplicas` without room are not moved; only the rest falls short.
    const wanted = take(shares(input, capacities, false), total);
    for (const cluster of clusters) {
      const more = (wanted[cluster] ?? 0) - Math.max(0, capacities[cluster] ?? Number.POSITIVE_INFINITY);
      if (more > 0) shortfall[cluster] = more;
    }
  }
  return { replicas: all(clusters, replicas), shortfall };
}

export interface DivisionShare {
  readonly cluster: string;
  readonly weight: number;
  readonly least: number;
  readonly most: number;
}

/** Returns the shares, the greatest weight first, then in the workload's own order. */
export function divisionShares(
  preferences: SchedulingPreferences,
  clusters: readonly string[],
  { capacities = byName(), key }: Pick<DivideInput, "capacities" | "key">,
): DivisionShare[] {
  return shares({ preferences, clusters, key }, capacities);
}

function shares(
  { preferences, clusters, key }: Pick<DivideInput, "preferences" | "clusters" | "key">,
  capacities: Replicas,
  limited = true,
): DivisionShare[] {
  const ordered = clusters.flatMap((cluster) => {
    const own = preferencesFor(preferences, cluster);
    if (own === undefined) return [];
    const room = Math.max(0, capacities[cluster] ?? Number.POSITIVE_INFINITY);
    const least = Math.min(own.minReplicas, room);
    const most = Math.min(own.maxReplicas ?? Number.POSITIVE_INFINITY, limited ? room : Number.POSITIVE_INFINITY);
    return [{ cluster, weight: own.weight, least, most, order: orderOf(cluster, key) }];
  });
  return ordered.sort((a, b) => b.weight - a.weight || a.order - b.order || (a.cluster < b.cluster ? -1 : 1));
}

/** Yields the cluster of each next replica by the quota method (Balinski and Young 1975): no share shrinks as n grows. */
export function* sequence(shares: readonly DivisionShare[]): Generator<string, void, undefined> {
  for (const { cluster, least } of shares) for (let n = 0; n < least; n++) yield cluster;
  const extras = shares.map(() => 0);
  let open = shares.flatMap(({ weight, least, most }, index) => (weight > 0 && least < most ? [index] : []));
  while (open.length > 0) {
    let weights = 0;
    let given = 1;
    for (const index of open) {
      weights += shares[index]?.weight ?? 0;
      given += extras[index] ?? 0;
    }
    let next = -1;
    let best = -1;
    for (const index of open) {
      const weight = shares[index]?.weight ?? 0;
      const has = extras[index] ?? 0;
      if (has * weights >= given * weight) continue;
      const claim = weight / (has + 1);
      if (claim > best) {
        best = claim;
        next = index;
      }
    }
    const share = shares[next];
    // Some cluster always has less than its exact share of one more.
    if (share === undefined) return;
    const has = (extras[next] ?? 0) + 1;
    extras[next] = has;
    yield share.cluster;
    if (share.least + has >= share.most) open = open.filter((index) => index !== next);
  }
}

function take(shares: readonly DivisionShare[], total: number): Record<string, number> {
  const replicas: Record<string, number> = byName();
  if (total <= 0) return replicas;
  let left = total;
  for (const cluster of sequence(shares)) {
    replicas[cluster] = (replicas[cluster] ?? 0) + 1;
    left -= 1;
    if (left === 0) break;
  }
  return replicas;
}

export function sum(replicas: Replicas): number {
  let total = 0;
  for (const cluster in replicas) total += replicas[cluster] ?? 0;
  return total;
}

function all(clusters: readonly string[], replicas: Replicas): Replicas {
  return byName(Object.fromEntries(clusters.map((cluster) => [cluster, replicas[cluster] ?? 0])));
}

/** KubeFed's hash, mixed so that workloads `web-1`, `web-2` begin with different clusters. */
function orderOf(cluster: string, key: string): number {
  return finalized(hash(cluster + key));
}

/** Applies the last step of MurmurHash3, 32 bits (Austin Appleby, public domain). */
function finalized(hashed: number): number {
  let value = hashed;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = (Math.imul(value, 0x01000193) ^ byte) >>> 0;
  return value;
}
