import { preferencesFor, type SchedulingPreferences } from "../api/preferences.ts";

/** Replicas by cluster. */
export type Replicas = Readonly<Record<string, number>>;

export interface DivideInput {
  readonly total: number;
  readonly preferences: SchedulingPreferences;
  /** The clusters that may have replicas now. */
  readonly clusters: readonly string[];
  /** What they have; without `rebalance` it stays where it is. */
  readonly current?: Replicas;
  /** The most that a cluster has room for; absent: as many as wanted. */
  readonly capacities?: Replicas;
  /** Makes clusters of one weight come in another order for each workload, so that single replicas spread. */
  readonly key?: string;
}

export interface Division {
  /** How many replicas each cluster is to have. */
  readonly replicas: Replicas;
  /** How many more a cluster would have had, had it room for them. */
  readonly overflow: Replicas;
}

/**
 * Divides replicas over clusters as KubeFed's planner does: each its `minReplicas`, the greater weight first; then what
 * they have already, unless `rebalance` is set; the rest by weight, never above `maxReplicas` or what they have room for.
 * It differs in how fractions are rounded: one replica more never takes one from any cluster.
 */
export function divide(input: DivideInput): Division {
  const { total, preferences, clusters, current = {}, capacities = {} } = input;
  const limited = shares(input, capacities);
  const ideal = take(limited, total);
  const replicas = preferences.rebalance ? ideal : keep(limited, ideal, current, total);
  const left = total - sum(replicas);
  const overflow: Record<string, number> = {};
  if (Object.keys(capacities).length > 0) {
    // Least replicas that there is no room for are not wanted elsewhere either: only the rest overflows.
    const wanted = take(shares(input, capacities, false), total);
    for (const cluster of clusters) {
      const more = (wanted[cluster] ?? 0) - Math.max(0, capacities[cluster] ?? Number.POSITIVE_INFINITY);
      const counted = preferences.rebalance ? more : Math.min(more, left);
      if (counted > 0) overflow[cluster] = counted;
    }
  }
  return { replicas: all(clusters, replicas), overflow };
}

/** What one cluster may get. */
export interface Share {
  readonly cluster: string;
  readonly weight: number;
  readonly least: number;
  readonly most: number;
}

/** The shares, best first: the greater weight, then an order that is the workload's own. */
export function sharesOf(
  preferences: SchedulingPreferences,
  clusters: readonly string[],
  { capacities = {}, key = "" }: Pick<DivideInput, "capacities" | "key"> = {},
): Share[] {
  return shares({ preferences, clusters, key }, capacities);
}

function shares(
  { preferences, clusters, key = "" }: Pick<DivideInput, "preferences" | "clusters" | "key">,
  capacities: Replicas,
  limited = true,
): Share[] {
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

/**
 * The cluster of the first replica, of the second, and so on, as long as some cluster wants one more. How many a cluster
 * has of the first n is its part of n: by the quota method (Balinski and Young 1975), so always its exact share rounded
 * up or down where no limit is in the way, and never less when n grows.
 */
export function* sequence(shares: readonly Share[]): Generator<string, void, undefined> {
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
    // Somebody always has less than an exact share of one more than all have.
    if (share === undefined) return;
    const has = (extras[next] ?? 0) + 1;
    extras[next] = has;
    yield share.cluster;
    if (share.least + has >= share.most) open = open.filter((index) => index !== next);
  }
}

function take(shares: readonly Share[], total: number): Record<string, number> {
  const replicas: Record<string, number> = {};
  if (total <= 0) return replicas;
  let left = total;
  for (const cluster of sequence(shares)) {
    replicas[cluster] = (replicas[cluster] ?? 0) + 1;
    left -= 1;
    if (left === 0) break;
  }
  return replicas;
}

/** The division that moves nothing: what clusters have stays, as far as there is a place and a use for it. */
function keep(shares: readonly Share[], ideal: Replicas, current: Replicas, total: number): Record<string, number> {
  const replicas: Record<string, number> = {};
  for (const { cluster, least } of shares) {
    replicas[cluster] = Math.min(least, ideal[cluster] ?? 0);
  }
  let left = total - sum(replicas);
  const kept = shares.map(({ cluster, most }) => {
    const more = Math.min(current[cluster] ?? 0, most) - (replicas[cluster] ?? 0);
    return { cluster, kept: Math.max(0, more) };
  });
  // Fewer than there are: those go first that are furthest above their share.
  for (let surplus = kept.reduce((all, one) => all + one.kept, 0) - left; surplus > 0; surplus--) {
    let most = kept[0];
    for (const one of kept) if (one.kept > 0 && (most === undefined || above(one) > above(most))) most = one;
    if (most !== undefined) most.kept -= 1;
  }
  function above({ cluster, kept: held }: { cluster: string; kept: number }): number {
    return held === 0 ? Number.NEGATIVE_INFINITY : held + (replicas[cluster] ?? 0) - (ideal[cluster] ?? 0);
  }
  for (const { cluster, kept: held } of kept) replicas[cluster] = (replicas[cluster] ?? 0) + held;
  left = total - sum(replicas);
  return fill(shares, replicas, left);
}

/** Gives each of the rest to the cluster that is furthest below its share of all. */
function fill(shares: readonly Share[], held: Record<string, number>, left: number): Record<string, number> {
  const seen: Record<string, number> = {};
  let rest = left;
  for (const cluster of rest > 0 ? sequence(shares) : []) {
    const n = (seen[cluster] ?? 0) + 1;
    seen[cluster] = n;
    // What a cluster has already is not given again.
    if (n <= (held[cluster] ?? 0)) continue;
    held[cluster] = n;
    rest -= 1;
    if (rest === 0) break;
  }
  return held;
}

/** How many they are in all clusters. */
export function sum(replicas: Replicas): number {
  let total = 0;
  for (const cluster in replicas) total += replicas[cluster] ?? 0;
  return total;
}

function all(clusters: readonly string[], replicas: Replicas): Replicas {
  return Object.fromEntries(clusters.map((cluster) => [cluster, replicas[cluster] ?? 0]));
}

/**
 * Where a cluster is among others of its weight: by KubeFed's hash, whose last bytes hardly change the order. So that workloads
 * `web-1`, `web-2` and so on do not all begin with one cluster, each bit of it counts for the whole.
 */
function orderOf(cluster: string, key: string): number {
  const value = hash(cluster + key);
  return key === "" ? value : finalized(value);
}

/** The last step of MurmurHash3, 32 bits (Austin Appleby, public domain). */
function finalized(hashed: number): number {
  let value = hashed;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

/** FNV-1, 32 bits, over UTF-8. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = (Math.imul(value, 0x01000193) ^ byte) >>> 0;
  return value;
}
