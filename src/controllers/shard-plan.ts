/** Who holds what, as one replica sees it. */
export interface ShardView {
  readonly me: string;
  /** The replicas that run, `me` among them. */
  readonly replicas: readonly string[];
  /** The holder of each shard; undefined of a free one. */
  readonly holders: readonly (string | undefined)[];
}

export interface ShardPlan {
  readonly take: readonly number[];
  readonly keep: readonly number[];
  readonly give: readonly number[];
}

/**
 * Shares shards out evenly. All replicas plan by the same order, the fullest first, so that the fewest shards move; the
 * first shard moves last, since its holder does most.
 */
export function planShards({ me, replicas, holders }: ShardView): ShardPlan {
  const heldBy = (replica: string): number[] => [...holders.keys()].filter((index) => holders[index] === replica);
  const order = replicas
    .map((replica) => ({ replica, held: heldBy(replica).length }))
    .sort((one, other) => other.held - one.held || (one.replica < other.replica ? -1 : 1));
  const rank = order.findIndex(({ replica }) => replica === me);
  const share = Math.floor(holders.length / order.length) + (rank < holders.length % order.length ? 1 : 0);
  const mine = heldBy(me);
  const free = [...holders.keys()].filter((index) => holders[index] === undefined);
  // Replicas that start together begin at different shards.
  const start = free.length === 0 ? 0 : rank % free.length;
  const turned = [...free.slice(start), ...free.slice(0, start)];
  const take = turned.slice(0, Math.max(0, share - mine.length));
  return { take, keep: mine.slice(0, share), give: mine.slice(share) };
}
