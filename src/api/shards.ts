import { CONTROLLER_LEASE, SLOT_LABEL, SYSTEM_NAMESPACE } from "./keys.ts";

/** The namespaces that one active controller has in hand: a part of all slots, by their number modulo `count`. */
export interface Shard {
  /** From 0 on. The holder of shard 0, the first, also does what is one for the whole host. */
  readonly index: number;
  readonly count: number;
}

/** The only shard, unless the operator asks for several. */
export const ALL_NAMESPACES: Shard = { index: 0, count: 1 };

/** Each shard's holder has connections, watches and caches of its own for every member. */
export const MOST_SHARDS = 16;

// A constant, so that the label of a pod stays right when the number of shards changes.
const SLOTS = 64;

/** Returns the slot of a namespace: FNV-1a of its name, modulo 64. */
export function slotOf(namespace: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(namespace)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % SLOTS;
}

/** Every shard reads objects without a namespace, and those of Legation's own namespace. */
export function isInShard({ index, count }: Shard, namespace: string | undefined): boolean {
  return namespace === undefined || namespace === SYSTEM_NAMESPACE || slotOf(namespace) % count === index;
}

export function isFirst({ index }: Shard): boolean {
  return index === 0;
}

/** Selects pods of the shard, and those without the label: an earlier webhook, or one of a single shard, admitted them. */
export function slotSelector({ index, count }: Shard): string {
  const others = Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => slot % count !== index);
  return `${SLOT_LABEL} notin (${others.join(",")})`;
}

const SHARD_LEASE = new RegExp(`^${CONTROLLER_LEASE}(?:-(\\d+))?$`);
/** Prefix of the Leases by which replicas that share out shards know each other. */
export const REPLICA_LEASE_PREFIX: string = `${CONTROLLER_LEASE}-replica-`;

/** Returns the index of the shard whose Lease has the name. */
export function shardOfLease(name: string): number | undefined {
  const [found, index = "0"] = SHARD_LEASE.exec(name) ?? [];
  return found === undefined ? undefined : Number(index);
}

/** The first shard's Lease has the name that the only shard's has. */
export function leaseOf(index: number): string {
  return index === 0 ? CONTROLLER_LEASE : `${CONTROLLER_LEASE}-${index}`;
}
